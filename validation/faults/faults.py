#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes faults on the GPUs of this host on purpose, and keeps what a user would have of each run.
"""faults.py --output DIR [--set first] [--gpus 2] [--only WORD] [--quick] [--seconds S]

Runs with the same program and environment share processes, since a start costs longer than a run. A run that is
in DIR already is not run again. No run is started after S seconds.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

from cases import PROGRAMS, cases

here = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--set", default="", help="first, blind, fresh, second, third, fourth or fifth (cases.py); otherwise by the GPUs")
    parser.add_argument("--only", default="", help="runs whose id holds this word")
    parser.add_argument("--quick", action="store_true", help="six steps a run")
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    chosen = options.set or ("first" if options.gpus == 2 else "blind")
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.time()
    wanted = [
        c
        for c in cases()
        if options.only in c["id"]
        and PROGRAMS[c["program"]].get("gpus", 2) == options.gpus
        and PROGRAMS[c["program"]].get("set", "first") == chosen
        and not (options.output / c["id"] / "run.json").exists()
    ]
    for (program, environment), group in itertools.groupby(
        wanted, key=lambda c: (c["program"], tuple(c["environment"].items()))
    ):
        left = options.seconds - (time.time() - start)
        if left < 30:
            print(f"no time is left for {program} {dict(environment)}", flush=True)
            continue
        file = options.output / "cases.json"
        file.write_text(json.dumps(list(group)))
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={options.gpus}", str(here / "worker.py")]
        words += [str(options.output), str(file)] + (["--quick"] if options.quick else [])
        clean = dict(os.environ, NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1", **dict(environment))
        try:
            subprocess.run(words, env=clean, timeout=left, stderr=open(options.output / "errors.txt", "a"))
        except subprocess.TimeoutExpired:
            print(f"stopped: {program} {dict(environment)}", flush=True)
        print(f"{time.time() - start:.0f} s: {program} {dict(environment)} done", flush=True)
    (options.output / "cases.json").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
