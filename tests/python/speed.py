# SPDX-License-Identifier: Apache-2.0
"""Prints how many different scenarios a minute orrery.sweep predicts, with and without ranges.

Usage: PYTHONPATH=build/python speed.py [COUNT]
"""
import json
import os
import pathlib
import subprocess
import sys
import time

import orrery

HERE = pathlib.Path(__file__).resolve().parent


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    lines = subprocess.run([sys.executable, HERE.parent / "jsonl/generate.py", str(count)], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    questions = [json.loads(line) for line in lines]
    for ranges in (False, True):
        start = time.monotonic()
        table = orrery.sweep(questions, ranges=ranges, progress=False)
        seconds = time.monotonic() - start
        bad = sum(error is not None for error in table["error"])
        print(f"{len(table):,} scenarios, ranges {ranges}, {os.cpu_count()} cores: {seconds:.1f} s, "
              f"{60 * len(table) / seconds:,.0f} a minute, {bad} errors")


main()
