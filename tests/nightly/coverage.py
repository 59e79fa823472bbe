# SPDX-License-Identifier: Apache-2.0
"""Prints the share of lines that the tests run, for each folder and for all.

Usage: tests/nightly/run coverage [--layers base,engine] [--minutes M] [--jobs N]
The programs are built by clang++ with counters; the report of a run that was cut is of what ran.
"""
import collections
import json
import pathlib
import subprocess

from part import LAYERS, ROOT, Part, options_of, run_part

FOLDERS = ("sim/", "hw_models/", "topologies/", "workloads/")


def folder_of(file):
    parts = pathlib.Path(file).parts
    return "/".join(parts[:2]) if parts[0] == "sim" else parts[0]


def report(part, programs):
    """Lines and covered lines by folder, from the counters of all programs."""
    profile = part.folder / "tests.profdata"
    raw = sorted((part.folder / "profiles").glob("*.profraw"))
    if not raw or not programs:
        return "; nothing ran"
    subprocess.run(["llvm-profdata", "merge", "-sparse", *raw, "-o", profile], check=True)
    objects = [word for program in programs[1:] for word in ("-object", program)]
    done = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", programs[0],
                           *objects], check=True, capture_output=True, text=True)
    lines = collections.Counter()
    covered = collections.Counter()
    for file in json.loads(done.stdout)["data"][0]["files"]:
        path = pathlib.Path(file["filename"])
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
        if not name.startswith(FOLDERS):
            continue
        for key in (folder_of(name), "all"):
            lines[key] += file["summary"]["lines"]["count"]
            covered[key] += file["summary"]["lines"]["covered"]
    print(f"\n{'folder':<16}{'lines':>8}{'run':>8}")
    for key in sorted(lines, key=lambda k: (k == "all", k)):
        print(f"{key:<16}{lines[key]:>8}{100 * covered[key] / lines[key]:>7.1f}%")
    return f"; {100 * covered['all'] / lines['all']:.1f}% of the lines were run"


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--layers", default=",".join(LAYERS), help="with commas")
    options = parser.parse_args()
    part = Part("coverage", options.minutes, options.jobs)
    (part.folder / "profiles").mkdir(exist_ok=True)

    def programs():
        built = [part.folder / "tests" / f"test_{layer}" for layer in LAYERS] + [part.folder / "orrery"]
        return [program for program in built if program.exists()]

    def work(part):
        part.need("clang++", "clang")
        part.need("llvm-cov", "llvm")
        part.need("llvm-profdata", "llvm")
        part.configure()
        # A file of counters for each program, which its processes add to.
        environment = {"LLVM_PROFILE_FILE": str(part.folder / "profiles" / "%m.profraw")}
        try:
            for layer in options.layers.split(","):
                if part.step(f"build {layer}", lambda l=layer: part.build(f"test_{l}")):
                    part.run_cases(layer, environment)
        finally:
            what = report(part, programs())
        return what

    run_part(part, work)


main()
