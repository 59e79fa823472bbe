# SPDX-License-Identifier: Apache-2.0
# Asks what power collectives draw alone and beside a product, and what both lose to the power limit.
"""Run: torchrun --standalone --nproc-per-node 2 collective_power.py --output FILE, with NCCL_NVLS_ENABLE=0.

Each case runs for `--seconds` without a pause, after a second of the same. Energy is the difference of the board's own
counter (NVML), mean power that over the time between. `bytes` is the whole tensor: what
all-gather gives, what reduce-scatter and all-reduce take. Beside a product a collective runs on a stream of its own, both
in loops of their own; times are of one call of each.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import Nvml, host_cpu

BF16, FP32 = torch.bfloat16, torch.float32
FORMS = {BF16: "bf16", FP32: "fp32"}


class Collective:
    """A collective of `size` bytes; three tensors take turns."""

    def __init__(self, kind, form, size, world, rank):
        self.kind, self.form, self.size = kind, form, size
        count = size // torch.empty((), dtype=form).element_size()
        self.whole = [torch.randn(count, device="cuda").to(form) for _ in range(3)]
        self.parts = [t.chunk(world)[rank].clone() for t in self.whole]

    def __call__(self, i):
        whole, part = self.whole[i % 3], self.parts[i % 3]
        if self.kind == "all-gather":
            dist.all_gather_into_tensor(whole, part)
        elif self.kind == "reduce-scatter":
            dist.reduce_scatter_tensor(part, whole, op=dist.ReduceOp.AVG)
        else:
            dist.all_reduce(whole, op=dist.ReduceOp.AVG)


class Product:
    def __init__(self, side):
        self.side = side
        self.a = [torch.randn(side, side, device="cuda", dtype=BF16) for _ in range(3)]
        self.b = [torch.randn(side, side, device="cuda", dtype=BF16) for _ in range(3)]
        self.out = torch.empty(side, side, device="cuda", dtype=BF16)

    def __call__(self, i):
        torch.mm(self.a[i % 3], self.b[i % 3], out=self.out)


class Copy:
    def __init__(self, size):
        self.size = size
        self.a = [torch.randn(size // 2, device="cuda").to(BF16) for _ in range(2)]
        self.out = torch.empty_like(self.a[0])

    def __call__(self, i):
        self.out.copy_(self.a[i % 2])


def together(works, calls, seconds, nvml):
    """Mean time of a call of each, energy and clocks, while every work loops on its own stream. Every rank makes the
    same calls: loops are counted, not timed."""
    streams = [torch.cuda.Stream() for _ in works]
    torch.cuda.synchronize()
    dist.barrier()

    def loop(rounds):
        ends, done = [], 0
        for _ in range(rounds):
            for work, stream, count in zip(works, streams, calls):
                with torch.cuda.stream(stream):
                    for i in range(count):
                        work(i)
            done += 1
            if done % 2 == 0:  # the host stays at most four rounds ahead
                event = torch.cuda.Event()
                event.record(streams[0])
                ends.append(event)
                if len(ends) > 2:
                    ends.pop(0).synchronize()
        torch.cuda.synchronize()

    start = time.perf_counter()
    loop(2)
    each = torch.tensor((time.perf_counter() - start) / 2, device="cuda")
    dist.all_reduce(each, op=dist.ReduceOp.MAX)
    rounds = max(4, int(seconds / float(each)))
    loop(max(2, int(1.0 / float(each))))
    dist.barrier()
    torch.cuda.synchronize()
    energy, start, clocks = nvml.energy(), time.perf_counter(), []
    half = max(1, rounds // 4)
    for _ in range(4):
        loop(half)
        clocks.append(nvml.clock())
    spent = nvml.energy() - energy
    passed = time.perf_counter() - start
    return dict(seconds=passed, round_s=passed / (4 * half), energy_j=spent, power_w=spent / passed,
                clock_mhz=sorted(clocks)[2], temperature_c=nvml.temperature())


def alone_time(work, calls):
    for i in range(3):
        work(i)
    torch.cuda.synchronize()
    dist.barrier()
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    for i in range(calls):
        work(i)
    b.record()
    torch.cuda.synchronize()
    each = torch.tensor(a.elapsed_time(b) / calls / 1e3, device="cuda")
    dist.all_reduce(each, op=dist.ReduceOp.MAX)
    return float(each)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=2.5)
    options = parser.parse_args()
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    rank, world, nvml = dist.get_rank(), dist.get_world_size(), Nvml(local)
    lines = []

    def line(**record):
        every = [None] * world
        dist.all_gather_object(every, record)
        if rank == 0:
            for gpu, one in enumerate(every):
                lines.append(json.dumps(dict(record="sample", gpu=gpu, **one)))
            print({k: (round(v, 6) if isinstance(v, float) else v) for k, v in record.items()}, flush=True)

    if rank == 0:
        lines.append(json.dumps(dict(
            record="conditions", program="collective-power", about=" ".join(__doc__.split()),
            device=torch.cuda.get_device_name(), gpus=world, driver=nvml.driver(), cuda=str(torch.version.cuda),
            libraries=dict(torch=str(torch.__version__), nccl=".".join(map(str, torch.cuda.nccl.version()))),
            power_limit_w=nvml.limit_w(), max_clock_mhz=nvml.max_clock(1), host=host_cpu(),
            date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"))))
    energy, start = nvml.energy(), time.perf_counter()
    time.sleep(2)
    line(case="idle", power_w=(nvml.energy() - energy)
         / (time.perf_counter() - start))
    product, copy = Product(8192), Copy(1 << 30)
    kinds = [("all-gather", BF16), ("reduce-scatter", BF16), ("reduce-scatter", FP32), ("all-reduce", BF16),
             ("all-reduce", FP32)]
    sizes = (32 << 20, 256 << 20)
    product_s = alone_time(product, 6)
    for name, work in (("product", product), ("copy", copy)):
        line(case=name, alone_s=alone_time(work, 6), **together([work], [20], options.seconds, nvml))
    for kind, form in kinds:
        for size in sizes:
            work = Collective(kind, form, size, world, rank)
            keys = dict(kind=kind, format=FORMS[form], bytes=size)
            alone = alone_time(work, 10)
            line(case="collective", alone_s=alone, **keys,
                 **together([work], [max(1, int(0.03 / alone))], options.seconds, nvml))
            # Both begin a round together; the one that ends first waits for the next round's calls.
            shares = () if size != sizes[1] else (1.0, 0.5) if kind == "all-gather" else (1.0,)
            for share in shares:
                calls = max(1, round(share * 20 * product_s / alone))
                line(case="beside-product", alone_s=alone, share=share, product_calls=20, calls=calls, **keys,
                     **together([product, work], [20, calls], options.seconds, nvml))
            del work
    if rank == 0:
        options.output.write_text("\n".join(lines) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
