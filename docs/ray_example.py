# SPDX-License-Identifier: Apache-2.0
"""A sweep over Ray: a task predicts a part of the grid, and a few parts for each core are on their way at once."""
import itertools

import pyarrow
import pyarrow.compute
import ray

import orrery

SETTINGS = {"model": "llama3-70b", "cluster": "dgx-h100", "seq": 8192, "global_batch": 256, "recompute": "full"}


@ray.remote
def swept(rows):
    return pyarrow.table(orrery.sweep(rows, threads=1, progress=False, **SETTINGS))


def sweep(rows, part=8):
    rows, done, on_their_way = iter(rows), {}, {}
    for number in itertools.count():
        rows_of_part = list(itertools.islice(rows, part))
        if rows_of_part:
            on_their_way[swept.remote(rows_of_part)] = number
        if not on_their_way:
            return pyarrow.concat_tables(done[number] for number in sorted(done))
        if not rows_of_part or len(on_their_way) > 2 * ray.available_resources().get("CPU", 1):
            (first,), _ = ray.wait(list(on_their_way))  # Ray itself runs a task again whose worker died
            done[on_their_way.pop(first)] = ray.get(first)


if __name__ == "__main__":
    ray.init(include_dashboard=False, logging_level="error")  # or ray.init("ray://HOST:10001")
    table = sweep({"gpus": gpus, "tp": tp, "pp": pp} for gpus in (64, 128) for tp in (2, 4, 8) for pp in (1, 2, 4, 8))
    fitting = table.filter(pyarrow.compute.field("fits")).sort_by("step_time_s").to_pylist()
    print(f"{len(table)} points, the fastest that fits: {fitting[0]['gpus']} GPUs, tp {fitting[0]['tp']}, "
          f"pp {fitting[0]['pp']}, {fitting[0]['step_time_s']:.1f} s")
