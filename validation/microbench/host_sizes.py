# SPDX-License-Identifier: Apache-2.0
# Asks whether a layer's host time under FSDP2 grows with its parameters, its size, or what else the host does.
"""Run: torchrun --standalone --nproc-per-node 1 host_sizes.py --output FILE [--beside]

Compiled layers in mixed precision, as `faults/worker.py` has them, on one rank. Each variant is two models of 4 and 12 layers;
all of them stay in memory and take turns, so that a host that changes its speed changes it for all. `issue`: the host's time
for a forward or backward pass after the device went idle, one more layer (difference of the two, by eight); `device`: from
event to event. `whole-...` are passes of 12 layers, whose spread is the host's. nvidia-smi is asked in turns: not at all, five
times a second. `--beside` marks a run beside another process that does the same: what a second rank's host costs. low and high
are the 10th and 90th percentile of the rounds.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from host_ranks import conditions, joined
from training_models import Model

FEW, MANY, ROUNDS = 4, 12, 40
WATCHES = (0, 200)  # milliseconds between questions of nvidia-smi; 0: it does not run
SMALL = dict(kind="llama", hidden=256, heads=4, kv_heads=2, head=64, ffn=512, vocab=512, tied=True)
REAL = dict(kind="llama", hidden=2048, heads=16, kv_heads=8, head=128, ffn=6144, vocab=512, tied=True)
# name: sizes, norms of each head, batch, sequence, compiled
VARIANTS = {
    "small": (SMALL, False, 1, 64, True),
    "small, head norms": (SMALL, True, 1, 64, True),
    "weights of 1.7B": (REAL, False, 1, 64, True),
    "weights and tokens": (REAL, False, 4, 2048, True),
    "weights and tokens, head norms": (REAL, True, 4, 2048, True),
    "small, eager": (SMALL, False, 1, 64, False),
    "weights and tokens, eager": (REAL, False, 4, 2048, False),
}


@contextlib.contextmanager
def watched(milliseconds):
    """nvidia-smi writes what it reads into a file, as beside a run that is looked after."""
    if not milliseconds:
        yield
        return
    with tempfile.NamedTemporaryFile() as file:
        query = "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used"
        process = subprocess.Popen(["nvidia-smi", query, "--format=csv", "-lms", str(milliseconds), "-f", file.name])
        time.sleep(0.6)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


class Case:
    def __init__(self, name, layers, device):
        sizes, norms, batch, length, compiled = VARIANTS[name]
        mesh = init_device_mesh("cuda", (dist.get_world_size(),))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        with torch.device(device):
            self.model = Model(dict(sizes, layers=layers, head_norm=norms), length)
        for i, block in enumerate(self.model.blocks):
            if compiled:
                self.model.blocks[i] = torch.compile(block, dynamic=False)
            fully_shard(self.model.blocks[i], mesh=mesh, mp_policy=policy)
        fully_shard(self.model, mesh=mesh, mp_policy=policy)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        words = torch.randint(0, 512, (batch, length + 1), device=device)
        self.words = words[:, :-1].contiguous(), words[:, 1:].contiguous()
        self.found = {}

    def step(self):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        marks[0].record()
        loss = self.model(*self.words)
        marks[1].record()
        forward = time.perf_counter()
        torch.cuda.synchronize()
        again = time.perf_counter()
        loss.backward()
        marks[2].record()
        backward = time.perf_counter()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        return {
            "issue-forward": 1e6 * (forward - begin), "issue-backward": 1e6 * (backward - again),
            "device-forward": 1e3 * marks[0].elapsed_time(marks[1]), "device-backward": 1e3 * marks[1].elapsed_time(marks[2]),
        }  # fmt: skip

    def turn(self, watch):
        for what, us in self.step().items():
            self.found.setdefault((watch, what), []).append(us)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--beside", action="store_true", help="what stands in the lines: another process ran")
    options = parser.parse_args()
    rank, device = joined()
    cases = {(name, n): Case(name, n, device) for name in VARIANTS for n in (FEW, MANY)}
    for case in cases.values():
        for _ in range(4):
            case.step()
    for turn in range(ROUNDS):
        for watch in WATCHES:
            with watched(watch):
                for case in cases.values():
                    case.turn(watch)
        print(f"round {turn + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    lines = [conditions("host_sizes", rank, beside=options.beside, cores=os.cpu_count())]
    for name in VARIANTS:
        few, many = cases[name, FEW].found, cases[name, MANY].found
        for watch, what in few:
            found = {
                what: [(b - a) / (MANY - FEW) for a, b in zip(few[watch, what], many[watch, what])],
                f"whole-{what}": many[watch, what],
            }
            for variant, each in found.items():
                each.sort()
                value, low, high = statistics.median(each), each[len(each) // 10], each[-1 - len(each) // 10]
                lines.append({
                    "record": "sample", "part": "host_sizes", "kind": "software", "variant": variant, "model": name,
                    "asked_every_ms": watch, "value": round(value, 1), "low": round(low, 1), "high": round(high, 1),
                    "mean": round(statistics.fmean(each), 1), "deviation": round(statistics.stdev(each), 1), "unit": "us",
                })  # fmt: skip
                print(f"{name:32} {variant:22} {watch:5} {value:8.0f} us ({low:.0f} to {high:.0f})", flush=True)
    if options.output:
        options.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
