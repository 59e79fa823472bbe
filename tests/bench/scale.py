#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sharing a question costs, and where it would stop to pay: tests/bench/scale.py BINARY [LINES]

Measures one shard of many, predicts from that alone how long 1, 2, 4 and 8 workers take on this machine, runs them,
and prints both; then what the same costs come to with up to 100,000 workers.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BINARY = sys.argv[1] if len(sys.argv) > 1 else "build/orrery"
LINES = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
CORES = len(os.sched_getaffinity(0))
# Of a scheduler and a file system, not of this machine. Slurm started 71 tasks of `true` a second where both cores
# ran them too (tests/slurm/cluster.py); a cluster's file system makes thousands of files a second and takes gigabytes
# a second (the lists of io500.org).
SLURM_TASKS_PER_S = float(os.environ.get("SLURM_TASKS_PER_S", "70"))
FILES_PER_S, BYTES_PER_S = 5e3, 1e9


def write_lines(file, count):
    job = {"model": "llama3-70b", "cluster": "dgx-h100", "seq": 8192, "recompute": "full", "ranges": False}
    with open(file, "w", encoding="utf-8") as out:
        for i in range(count):
            out.write(json.dumps({**job, "gpus": 64 * 2 ** (i % 4), "tp": 2 ** (i // 4 % 4),
                                  "global_batch": 1024, "gpu_hour_price": 1 + i / 1e6}) + "\n")


def run(*words):
    began = time.perf_counter()
    subprocess.run([BINARY, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def shards(folder, lines, workers, counts=None, of=None, command="simulate"):
    """Seconds that so many shards take beside each other, all of `of` begun at once."""
    of = of or workers
    began = time.perf_counter()
    started = [subprocess.Popen([BINARY, command, "--csv", "--jsonl", lines, "--results", folder, "--shard",
                                 f"{i}/{of}", "--threads", "1", "--quiet"], stderr=subprocess.DEVNULL)
               for i in (counts or range(workers))]
    for process in started:
        if process.wait() != 0:
            sys.exit(f"a shard ended with {process.returncode}")
    return time.perf_counter() - began


def kept(folder):
    """Points and bytes of them in a folder of results."""
    files = list(folder.glob("part-*"))
    points = sum(1 for file in files for _ in open(file, encoding="utf-8"))
    return points, sum(file.stat().st_size for file in files) / points


def on_paper(name, total, start, scan, point, size, merge):
    """Seconds that parts of the work take with more and more workers."""
    print(f"\n{total:,} {name}, a core a worker: seconds of each part, and the share of the cores' time that is points")
    print("workers    points      scan  scheduler     files     bytes     merge    share")
    for workers in (1, 10, 100, 1_000, 10_000, 100_000):
        parts = {"points": total / workers * point, "scan": start + total * scan,
                 "scheduler": workers / SLURM_TASKS_PER_S, "files": workers / FILES_PER_S,
                 "bytes": total * size / BYTES_PER_S, "merge": total * merge}
        # The last task starts when all have been started, and works then; files and bytes flow meanwhile.
        wall = parts["scheduler"] + max(parts["points"] + parts["scan"], parts["files"], parts["bytes"])
        print(f"{workers:7,}" + "".join(f"{parts[key]:10.1f}" for key in parts) + f"{parts['points'] / wall:9.1%}")


def main():
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        lines, few = here / "lines.jsonl", here / "few.jsonl"
        write_lines(lines, LINES)
        write_lines(few, 1)
        # A shard that has nothing to do reads all lines: what it takes beyond one line is the scan.
        start = statistics.median(shards(here / f"few{i}", few, 1) for i in range(7))
        idle = statistics.median(shards(here / f"idle{i}", lines, 1, counts=[0], of=1_000_000) for i in range(3))
        scan = max(0.0, idle - start) / LINES
        part = shards(here / "part", lines, 1, counts=[0], of=8)
        done, size = kept(here / "part")
        point = (part - idle) / done
        print(f"one shard of 8 of {LINES:,} lines: {start * 1e3:.1f} ms to start, {scan * 1e6:.2f} us a line to look "
              f"at, {point * 1e6:.0f} us a point, {size:.0f} bytes a point")
        print(f"{CORES} cores\n")
        print("workers  predicted s  measured s  points/s")
        for workers in (1, 2, 4, 8):
            own = start + LINES * scan + LINES / workers * point
            predicted = own * max(1.0, workers / CORES)
            measured = shards(here / f"w{workers}", lines, workers)
            print(f"{workers:7}  {predicted:11.2f}  {measured:10.2f}  {LINES / measured:8,.0f}")
        merge = statistics.median(run("merge", here / "w8") for _ in range(3)) / LINES
        jobs = here / "jobs.jsonl"
        jobs.write_text("".join(json.dumps({"model": "llama3-70b", "cluster": "dgx-h100", "gpus": 64, "seq": 8192,
                                            "global_batch": 64 * (1 + i)}) + "\n" for i in range(20)))
        search = shards(here / "searches", jobs, 1, command="advise") / 20
        print(f"\nmerge: {merge * 1e6:.1f} us a point; a search of advise: {search:.2f} s")
        on_paper("predictions", 10**7, start, scan, point, size, merge)
        on_paper("searches", 10**6, start, scan, search, kept(here / "searches")[1], merge)


main()
