# SPDX-License-Identifier: Apache-2.0
"""Sweeps over Dask at size: the rate beside one process, memory over a million points, workers killed.

Usage: tests/nightly/run sweep [--points 100000] [--plan-points 1000000] [--kills 20] [--minutes M]
The rates are taken in turns, so that what else runs counts for both. The program is build/python's.
"""
import os
import sys

from part import ROOT, Part, options_of, run_part

PYTHON = ROOT / "build/venv/bin/python"


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=100_000, help="of the rate")
    parser.add_argument("--turns", type=int, default=2, help="of the rate, each of one process and of a cluster")
    parser.add_argument("--plan-points", type=int, default=1_000_000, help="of the plan")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    part = Part("sweep", options.minutes)

    def run(name, *words):
        log = part.logs / f"{name}.log"
        code = part.command([PYTHON, ROOT / "tests/nightly/sweep_at_size.py", name, *words], log,
                            env={**os.environ, "PYTHONPATH": str(ROOT / "build/python")})
        print(log.read_text(errors="replace")[-3000:], end="")
        return code == 0

    def work(part):
        if not PYTHON.exists() or not (ROOT / "build/python/orrery/distributed.py").exists():
            print("sweep: found no Python package in build/; expected a build: ./orrery test builds it",
                  file=sys.stderr)
            sys.exit(4)
        part.step(f"rate of {options.points:,} points", lambda: run("rate", options.points, options.turns))
        part.step(f"{options.kills} workers killed", lambda: run("kills", options.points, options.kills))
        # Begun anew each time: a folder that goes on would measure the rest alone.
        part.step(f"memory of a plan of {options.plan_points:,} points", lambda: run("plan", options.plan_points))

    run_part(part, work)


main()
