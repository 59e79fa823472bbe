# SPDX-License-Identifier: Apache-2.0
"""Reads a trace of a gigabyte, plain and packed, in less than 20 s and 2 GiB, and diagnoses with it.

Usage: tests/nightly/run trace [--mebibytes N]. The programs are build/tests/bench_observe and build/orrery.
"""
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from part import ROOT, Part, options_of, run_part

BENCH, ORRERY = ROOT / "build/tests/bench_observe", ROOT / "build/orrery"
MOST_SECONDS, MOST_MEBIBYTES = 20, 2048
# Eight ranks, as the trace says it has.
RUN = ["--model", "llama3.1-8b", "--cluster", "dgx-h200", "--gpus", "8", "--seq", "4096", "--global-batch", "64"]


def diagnose(trace):
    """Whether a diagnosis of the trace alone ends in time: another run is told, exit code 1."""
    began = time.perf_counter()
    done = subprocess.run([ORRERY, "--quiet", "diagnose", "--json", *RUN, trace], capture_output=True, text=True,
                          check=False)
    seconds = time.perf_counter() - began
    # The most of all children so far, of which the bench reads the same trace.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"diagnose: {seconds:.1f} s, at most {peak:,.0f} MiB, exit code {done.returncode} {done.stderr.strip()}")
    return done.returncode in (0, 1) and seconds < MOST_SECONDS and peak < MOST_MEBIBYTES


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--mebibytes", type=int, default=1024, help="of the trace")
    options = parser.parse_args()
    part = Part("trace", options.minutes)
    for program in (BENCH, ORRERY):
        if not program.is_file():
            print(f"trace: found no {program}; build it: ninja -C build orrery bench_observe", file=sys.stderr)
            sys.exit(4)

    def read(trace):
        log = part.logs / "read.log"
        code = part.command([sys.executable, ROOT / "tests/bench/big_trace.py", BENCH, options.mebibytes, "--keep",
                             trace], log)
        print(log.read_text(errors="replace")[-3000:], end="")
        return code == 0

    def work(part):
        part.steps = {}  # it takes a minute: all of it, each time
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.json"
            part.step(f"a trace of {options.mebibytes:,} MiB is read", lambda: read(trace))
            part.step("a diagnosis with it ends", lambda: diagnose(trace))

    run_part(part, work)


if __name__ == "__main__":
    main()
