# SPDX-License-Identifier: Apache-2.0
# Asks what host time a layer takes under DDP and FSDP2, by the number of ranks.
"""Run: torchrun --standalone --nproc-per-node N host_ranks.py --output FILE, for N from 1 to the GPUs of a host.

The device has next to nothing to do: layers of hidden size 256, 64 tokens. One more layer takes the difference between models
of two depths. `issue` is what the host takes to issue a phase after the device went idle, `pace` what a step takes where
steps follow each other without a wait, as in training; both are the slowest rank's. `compiled`: each layer is.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import Nvml, host_cpu
from framework_steps import PHASES, TINY, timed_step
from llama_layer import Model

FEW, MANY, TOKENS = 2, 10, 64


def ddp(device, layers, compiled):
    model = Model(TINY, layers, TOKENS, device)
    if compiled:
        for layer in model.layers:
            layer.compile()
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


def fsdp(device, layers, compiled, mixed):
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = Model(TINY, layers, TOKENS, device)
    options = {"mesh": mesh}
    if mixed:
        model = model.float()
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        if compiled:
            layer.compile()
        fully_shard(layer, **options)
    fully_shard(model, **options)
    return model


BUILD = {
    "ddp": ddp,
    "fsdp2": lambda *a: fsdp(*a, mixed=False),
    "fsdp2-mixed": lambda *a: fsdp(*a, mixed=True),
}


def measure(build, device, layers, compiled, issues=15, paces=7, run=20):
    """Microseconds: host time of each phase (lists), and of a step in runs without a wait."""
    torch._dynamo.reset()
    model = build(device, layers, compiled)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, TINY["vocab"], (1, TOKENS), device=device)
    for _ in range(5):
        timed_step(model, optimizer, tokens)
    issued = {phase: [] for phase in PHASES}
    for _ in range(issues):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        for phase, us in zip(PHASES, timed_step(model, optimizer, tokens)):
            issued[phase].append(us)
    pace = {"step": [], "forward": [], "backward": []}
    for _ in range(paces):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        inside = [timed_step(model, optimizer, tokens) for _ in range(run)]
        torch.cuda.synchronize()
        pace["step"].append(1e6 * (time.perf_counter() - begin) / run)
        pace["forward"].append(statistics.median(one[0] for one in inside))
        pace["backward"].append(statistics.median(one[1] for one in inside))
    return issued, pace


def slowest(value, device):
    tensor = torch.tensor([value], device=device, dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.item()


def slope(few, many, device):
    """Median, least and most of one more layer; the slowest rank's."""
    base = statistics.median(few)
    each = [(f(many) - base) / (MANY - FEW) for f in (statistics.median, min, max)]
    return [slowest(value, device) for value in each]


def joined():
    """This rank and its device, in a group of all that torchrun started; many models may be compiled."""
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch._dynamo.config.cache_size_limit = 256
    return rank, device


def conditions(program, rank, **more):
    return {
        "record": "conditions", "program": program, "ranks": dist.get_world_size(), **more,
        "device": torch.cuda.get_device_name(rank), "driver": Nvml(rank).driver(), "cuda": torch.version.cuda,
        "torch": str(torch.__version__), "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "host": host_cpu(), "date": datetime.date.today().isoformat(),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    rank, device = joined()
    lines = [conditions("host_ranks", rank)] if rank == 0 else []
    for name, build in BUILD.items():
        for compiled in (False, True):
            (issued_few, pace_few), (issued_many, pace_many) = (
                measure(build, device, count, compiled) for count in (FEW, MANY)
            )
            found = {f"issue-{p}": (issued_few[p], issued_many[p]) for p in ("forward", "backward")}
            found |= {f"pace-{p}": (pace_few[p], pace_many[p]) for p in pace_few}
            for what, (few, many) in found.items():
                value, low, high = slope(few, many, device)
                rest = slowest(statistics.median(few) - FEW * value, device)
                lines.append({
                    "record": "sample", "part": "host_ranks", "kind": "software", "variant": f"layer-{what}", "wrapper": name,
                    "compiled": compiled, "ranks": dist.get_world_size(), "value": round(value, 1), "low": round(low, 1),
                    "high": round(high, 1), "rest": round(rest, 1), "unit": "us",
                })  # fmt: skip
                if rank == 0:
                    print(f"{name:12} {'compiled' if compiled else 'eager':9} {what:15} {value:8.0f} us a layer "
                          f"({low:.0f} to {high:.0f}), {rest:.0f} beside", flush=True)  # fmt: skip
    if rank == 0:
        options.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
