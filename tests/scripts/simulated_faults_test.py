#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs with simulated faults are made and diagnosed, and docs/diagnose.md shows what comes out.

Usage: simulated_faults_test.py BINARY SOURCE_FOLDER. UPDATE_EXPECTED=1 rewrites the page.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

binary, root = sys.argv[1], pathlib.Path(sys.argv[2])
page = root / "docs/diagnose.md"
faulty_rank = int(re.search(r"^GPU = (\d+)", (root / "validation/faults/simulated.py").read_text(), re.M)[1])
# Kind of run: faults that are found first, and among three, and costs within 5 points, and how many cost 3% and more; one
# of each may be lost. Without counters of ports nothing tells a slow NIC from routes that collide.
REACHED = {"runs": (181, 189, 188, 189), "bare": (111, 156, 162, 180)}
FIGURES = ("right cause first", "right cause in three", "gap within 5 points")


def run(*words, codes=(0,)):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"{words}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def shown_of(folder, kind):
    """What is found in runs of a kind, without the list of every run; ends the test where it is less than was reached."""
    printed = run(binary, "--quiet", "diagnose", "--runs", f"{folder}/{kind}")
    shown = printed[: printed.index("Every run")]
    found = {name: re.search(name + r" +\S+ +(\d+) of (\d+)", shown) for name in (*FIGURES, "alarms without a fault")}
    alarms = found["alarms without a fault"]
    if not alarms or int(alarms[1]) or int(alarms[2]) < 36:
        sys.exit(f"{kind}: healthy runs raise alarms, or there are too few: {alarms and alarms[0]}")
    *reached, faults = REACHED[kind]
    for name, most in zip(FIGURES, reached):
        if not found[name] or int(found[name][2]) != faults or int(found[name][1]) < most - 1:
            sys.exit(f"{kind}: found less often than before, which was {most} of {faults}: {found[name] and found[name][0]}")
    return shown


with tempfile.TemporaryDirectory() as folder:
    run(sys.executable, root / "validation/faults/simulated.py", binary, "--output", folder)
    shown = {kind: shown_of(folder, kind) for kind in REACHED}
    # Few ranks are profiled, so the place of a profile is not the number of its rank.
    named = set()
    for ran in sorted(pathlib.Path(folder, "runs").glob("*-low-clock-*")):
        program = json.loads((ran / "run.json").read_text())["program"]
        like = f"{folder}/programs/{program}.json"
        # Exit code 1: something is found.
        answer = run(binary, "--quiet", "diagnose", "--json", "--like", like, ran, codes=(0, 1))
        found = json.loads(answer)["findings"]
        named |= {f["rank"] for f in found if f["cause"] == "low-clock"}
if named != {faulty_rank}:
    sys.exit(f"the GPU at a lower clock is that of rank {faulty_rank}, and diagnose names {sorted(named)}")
text = now = page.read_text()
for kind, table in shown.items():
    now = re.sub(rf"(```text simulated {kind}\n).*?(```)", lambda found: found[1] + table + found[2], now, flags=re.S)
if any(f"```text simulated {kind}\n" not in now for kind in shown):
    sys.exit("docs/diagnose.md lacks a table of simulated runs")
if now != text:
    if os.environ.get("UPDATE_EXPECTED") != "1":
        sys.exit("docs/diagnose.md shows other runs than are found: UPDATE_EXPECTED=1 rewrites it")
    page.write_text(now)
print("simulated faults: as docs/diagnose.md shows")
