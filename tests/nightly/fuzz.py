# SPDX-License-Identifier: Apache-2.0
"""Fuzzes every reader with libFuzzer, from seeds that are made of the catalogues.

Usage: tests/nightly/run fuzz [--seconds S] [--targets json,stack] [--minutes M] [--jobs N]
What was reached stands in build-fuzz/corpus/TARGET, and the next run starts from it. What breaks a
reader stands in build-fuzz/found: it becomes a case of tests/fuzz/readers_test.cpp.
"""
import os
import re
import time

from part import ROOT, Part, options_of, run_part

ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}


def targets():
    text = (ROOT / "tests/fuzz/readers.cpp").read_text()
    return re.findall(r'^ +\{"([a-z]+)",', text, re.M)


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=180, help="for each target")
    parser.add_argument("--targets", help="with commas; all by default")
    options = parser.parse_args()
    part = Part("fuzz", options.minutes, options.jobs)
    names = options.targets.split(",") if options.targets else targets()
    seed = int(time.time()) % 2**31
    environment = {**os.environ, **ENVIRONMENT}

    def fuzz(name):
        program = part.folder / "tests" / f"fuzz_{name}"
        seeds, corpus = part.folder / "seeds" / name, part.folder / "corpus" / name
        found = part.folder / "found"
        for folder in (corpus, found):
            folder.mkdir(parents=True, exist_ok=True)
        if part.command([program], part.logs / "seeds.log", env={**environment, "ORRERY_SEEDS": str(seeds)}):
            return False
        log = part.logs / f"{name}.log"
        code = part.command(
            [program, f"-max_total_time={options.seconds}", "-timeout=20", "-rss_limit_mb=4096",
             f"-seed={seed}", f"-dict={seeds}.words", f"-artifact_prefix={found}/{name}-",
             "-print_final_stats=1", "-verbosity=1", corpus, seeds], log, env=environment)
        text = log.read_text(errors="replace")
        runs = re.search(r"number_of_executed_units:\s*(\d+)", text)
        cover = re.findall(r"cov: (\d+)", text)
        print(f"  {name}: {runs[1] if runs else '?'} texts, {cover[-1] if cover else '?'} edges, seed {seed}")
        if code != 0:
            print(text[-5000:], f"\nagain: {program} FILE; files: {found}/{name}-*")
        return code == 0

    def work(part):
        part.need("clang++", "clang")
        part.configure()
        for name in names:
            if part.step(f"build {name}", lambda n=name: part.build(f"fuzz_{n}")):
                part.step(f"fuzz {name} for {options.seconds} s", lambda n=name: fuzz(n))

    run_part(part, work)


main()
