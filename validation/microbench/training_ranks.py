# SPDX-License-Identifier: Apache-2.0
# Asks how long whole training steps take on several GPUs: FSDP2 of small Llama models, adapters on 8B.
"""Run: torchrun --standalone --nproc-per-node N training_ranks.py [--quick]. Every block and the model are
wrapped by fully_shard. Weights and optimizer states are FP32 and are gathered in BF16, gradients are
reduced in FP32 (`amp`); or all are BF16 and gradients are reduced in BF16 (`bf16`). `reshard` 0: weights
stay gathered from forward to backward. Times are those of rank 0, between events of steps that follow each
other without a wait. The collectives alone come first.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from training_bench import TrainingBench
from training_models import MODELS, Model, flop_of, timed_steps, with_adapters

# model, sequence, micro-batch, precision, compiled, recompute, reshard, rank of adapters
CASES = [
    ("llama-3.2-1b", 4096, 2, "amp", True, False, True, 0),
    ("llama-3.2-1b", 4096, 2, "amp", False, False, True, 0),
    ("llama-3.2-3b", 4096, 1, "amp", True, False, True, 0),
    ("llama-3.2-3b", 4096, 1, "amp", False, False, True, 0),
    ("llama-3.1-8b", 4096, 1, "bf16", True, False, True, 16),
    ("llama-3.2-1b", 1024, 1, "amp", True, False, True, 0),
    ("llama-3.2-1b", 1024, 1, "amp", False, False, True, 0),
    ("llama-3.2-3b", 4096, 2, "amp", True, True, True, 0),
    ("llama-3.1-8b", 4096, 2, "bf16", True, True, True, 16),
    ("llama-3.2-1b", 4096, 2, "amp", True, False, False, 0),
    ("llama-3.2-1b", 2048, 4, "bf16", True, False, True, 0),
    ("llama-3.1-8b", 2048, 1, "bf16", False, False, True, 16),
    ("llama-3.2-1b", 4096, 4, "amp", True, True, True, 0),
    ("llama-3.2-3b", 2048, 1, "bf16", True, False, True, 0),
    ("llama-3.1-8b", 4096, 1, "bf16", True, False, False, 16),
]


def sharded(bench, c, sequence, precision, compiled, recompute, reshard, rank):
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if precision == "amp" else torch.bfloat16)
    try:
        with torch.device(bench.device):
            model = Model(c, sequence, 0.0, recompute)
            if rank:
                with_adapters(model, rank)
    finally:
        torch.set_default_dtype(default)
    mesh = init_device_mesh(bench.device.type, (dist.get_world_size(),))
    reduce = torch.float32 if precision == "amp" else torch.bfloat16
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)
    for i, block in enumerate(model.blocks):
        if compiled:  # the hooks of fully_shard stay outside
            model.blocks[i] = torch.compile(block, dynamic=False)
        fully_shard(model.blocks[i], mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
    if compiled:
        model.loss = torch.compile(model.loss, dynamic=False)
    return fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)


def step_case(bench, name, sequence, batch, precision, compiled, recompute, reshard, rank):
    torch._dynamo.reset()
    c = MODELS[name]
    model = sharded(bench, c, sequence, precision, compiled, recompute, reshard, rank)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    tokens, targets = (torch.randint(0, c["vocab"], (batch, sequence), device=bench.device) for _ in range(2))
    dist.barrier()
    timing = timed_steps(lambda: model(tokens, targets), optimizer, warm=3, steps=6)
    count = batch * sequence
    bench.sample(
        "training-step",
        "fsdp2",
        "inductor" if compiled else "eager",
        timing,
        model=name,
        precision=precision,
        sequence=sequence,
        micro_batch=batch,
        tokens=count,
        dropout=0.0,
        recompute=int(recompute),
        reshard=int(reshard),
        adapter_rank=rank,
        ranks=dist.get_world_size(),
        tokens_per_s=1e6 * count * dist.get_world_size() / timing["time_us"],
        flop=flop_of(c, count, sequence, rank > 0),
        parameters=sum(p.numel() for p in model.parameters()),
        trained=sum(p.numel() for p in parameters),
        clock_after_mhz=bench.nvml.clock(),
        power_w=bench.nvml.power(),
        temperature_c=bench.nvml.temperature(),
        **{k: v for k, v in c.items() if k not in ("kind", "tied")},
    )


def collectives(bench):
    world = dist.get_world_size()
    for nbytes in (1 << 24, 1 << 27, 1 << 29):
        whole = torch.randn(nbytes // 2, device=bench.device).bfloat16()
        part = whole[: whole.numel() // world].clone()
        for name, call in (
            ("all-gather", lambda: dist.all_gather_into_tensor(whole, part)),
            ("reduce-scatter", lambda: dist.reduce_scatter_tensor(part, whole)),
        ):
            for _ in range(5):
                call()
            dist.barrier()
            times = sorted(bench.events_us(lambda: [call() for _ in range(10)]) / 10 for _ in range(5))
            bench.sample(
                name,
                "nccl",
                "",
                dict(time_us=times[2], low_us=times[0], high_us=times[-1], repeats=5, calls=10),
                ranks=world,
                bytes=nbytes,
                input="bf16",
            )


def main():
    local = int(os.environ["LOCAL_RANK"])
    sys.argv += ["--gpu", str(local)]
    bench = TrainingBench("training-ranks", ["ranks"])
    torch.cuda.set_stream(torch.cuda.default_stream())
    dist.init_process_group(device_id=bench.device)
    if dist.get_rank() > 0:
        bench.out.line = lambda *words, **keys: None
    bench.conditions(dist.get_world_size(), about=" ".join(__doc__.split()))
    bench.begin("ranks", 1e9, [])
    bench.case("collectives", lambda: collectives(bench))
    limit = bench.asked_seconds or 170
    for case in CASES[:2] if bench.quick else CASES:
        late = torch.tensor(int(bench.elapsed() > limit), device=bench.device)
        dist.all_reduce(late)  # all ranks stop at the same case
        if int(late):
            bench.skipped += 1
            continue
        bench.case(f"step {case}", lambda: step_case(bench, *case), model=case[0])
        bench.free()
    dist.destroy_process_group()
    bench.close()


if __name__ == "__main__":
    main()
