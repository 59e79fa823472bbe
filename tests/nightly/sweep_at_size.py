# SPDX-License-Identifier: Apache-2.0
"""One large sweep over a LocalCluster of two workers, and what it must keep to.

Usage: PYTHONPATH=build/python sweep_at_size.py rate POINTS TURNS | kills POINTS KILLS | plan POINTS
"""
import contextlib
import os
import pathlib
import random
import resource
import signal
import sys
import tempfile
import threading
import time

import distributed
import pyarrow

import orrery

LEAST_RATE = 0.9  # of one process with as many threads
MOST_MEMORY = 2e9  # bytes of the client
SETTINGS = {"model": "llama3-70b", "cluster": "dgx-h100", "seq": 8192, "recompute": "full"}


def grid_of(points):
    """A grid of so many different questions, or a few more."""
    shapes = {"gpus": [64, 128, 256, 512, 1024], "tp": [1, 2, 4, 8], "pp": [1, 2, 4, 8], "global_batch": [256, 512]}
    count = 5 * 4 * 4 * 2
    return {"gpu_hour_price": [1 + i / 100 for i in range(-(-points // count))], **shapes}


def plan_of(points):
    """A capacity question of so many points: few searches, many prices."""
    electricity = [round(0.03 + i / 1000, 4) for i in range(100)]
    accelerators = [20_000 + 100 * i for i in range(100)]
    failures = [round(0.5 + i / 50, 3) for i in range(max(1, points // 20_000))]
    return {"model": "llama3-8b", "cluster": "dgx-h100", "seq": 8192, "global_batch": 512, "tokens": "1T",
            "gpus": [64, 128], "failure_rate": failures, "accelerator_price": accelerators,
            "electricity_price": electricity}


def loaded():
    """Packages that the first sweep of a process loads."""
    return len(pyarrow.table(orrery.sweep([SETTINGS], progress=False)))


@contextlib.contextmanager
def cluster():
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local,
          distributed.Client(local) as client):
        client.run(loaded)
        yield client


def numbered(table):
    return table.add_column(0, "point", pyarrow.array(range(1, len(table) + 1), pyarrow.int64()))


def folder_bytes(folder):
    return sum(file.stat().st_size for file in pathlib.Path(folder).glob("part-*"))


def timed(run, client):
    """What it gives, its seconds, and seconds of processors of this process and the workers."""
    def spent():
        return time.process_time() + sum(client.run(time.process_time).values())

    before, start = spent(), time.monotonic()
    result, seconds = run(), time.monotonic() - start
    return result, seconds, spent() - before


def rate(scratch, client, points, turns):
    grid, alone, spread, alone_cpu, spread_cpu = grid_of(points), [], [], 0.0, 0.0
    for turn in range(turns):
        whole, seconds, cpu = timed(
            lambda: pyarrow.table(orrery.sweep(grid, threads=2, progress=False, **SETTINGS)), client)
        alone.append(len(whole) / seconds)
        alone_cpu += cpu
        folder = scratch / f"rate-{turn}"
        results, seconds, cpu = timed(
            lambda f=folder: orrery.distributed.sweep(grid, f, client=client, progress=False, **SETTINGS), client)
        spread.append(len(results) / seconds)
        spread_cpu += cpu
        if not results.table().equals(numbered(whole)):
            print("the rows of the cluster are not those of one process")
            return False
    share = sum(spread) / sum(alone)
    print(f"processors: {alone_cpu / turns:.1f} s a turn of one process, {spread_cpu / turns:.1f} s of client and workers")
    print(f"{len(whole):,} points; a process of 2 threads {[round(one) for one in alone]} a second, 2 workers "
          f"{[round(one) for one in spread]}: {share:.2f} of its rate; the same bytes; "
          f"{folder_bytes(folder) / len(whole):.0f} bytes a point in {len(list(folder.glob('part-*')))} parts")
    return share >= LEAST_RATE


def kills(scratch, client, points, count):
    grid, killed, ended = grid_of(points), [], threading.Event()

    def kill():
        draw = random.Random(20)
        while len(killed) < count and not ended.wait(draw.uniform(0.1, 1.5)):
            with contextlib.suppress(Exception):
                pid = draw.choice(list(client.run(os.getpid).values()))
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    # Again and again until all have been killed: each sweep of a folder of its own.
    sweeps, same = 0, True
    whole = numbered(pyarrow.table(orrery.sweep(grid, threads=2, progress=False, **SETTINGS)))
    while same and (len(killed) < count or not sweeps):
        results = orrery.distributed.sweep(grid, scratch / f"kills-{sweeps}", client=client, seconds=1, progress=False,
                                           **SETTINGS)
        same = results.table().equals(whole) and not results.missing
        sweeps += 1
    ended.set()
    killer.join()
    print(f"{len(killed)} workers killed during {sweeps} sweeps of {len(whole):,} points: "
          f"{'all rows are there once' if same else 'rows differ'}")
    return same


def plan(scratch, client, points):
    told, start = [], time.monotonic()

    def progress(done):
        if done >= (len(told) + 1) * points / 10:
            told.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
            print(f"{done:,} points after {time.monotonic() - start:.0f} s, "
                  f"at most {told[-1] / 1e6:.0f} MB in the client", flush=True)

    results = orrery.distributed.plan(plan_of(points), scratch / "plan", client=client, progress=progress)
    seconds, peak = time.monotonic() - start, told[-1]
    ordered, at = True, 0
    for table in results:
        numbers = table["point"].to_pylist()
        ordered = ordered and numbers == list(range(at + 1, at + 1 + len(numbers)))
        at += len(numbers)
    parts = len(list((scratch / "plan").glob("part-*")))
    print(f"{len(results):,} points of a plan in {seconds:.0f} s, {results.errors} errors, workers "
          f"{results.seconds:.0f} s ({1000 * results.seconds / len(results):.2f} ms a point), {parts} parts, "
          f"{folder_bytes(scratch / 'plan') / len(results):.0f} bytes a point; the client at most {peak / 1e6:.0f} MB")
    return ordered and at == results.points and not results.missing and peak < MOST_MEMORY


def main():
    with tempfile.TemporaryDirectory() as scratch, cluster() as client:
        passed = {"rate": rate, "kills": kills, "plan": plan}[sys.argv[1]](pathlib.Path(scratch), client,
                                                                         *map(int, sys.argv[2:]))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
