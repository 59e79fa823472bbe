# SPDX-License-Identifier: Apache-2.0
# Times the copies around sharded training's collectives, and updates of a layer's parameters.
"""FSDP2 (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py) copies a unit's shards into the input of
its gather, the gathered parameters out of it, and gradients into the reduction's input; DDP divides gradients
into its buckets (torch/csrc/distributed/c10d/reducer.cpp). Units are decoder layers; `ways` shards each.
"""

import torch

# hidden, feed-forward, rows of keys and values
LAYERS = {"1b": (2048, 8192, 512), "8b": (4096, 14336, 1024), "32b": (5120, 25600, 1024)}
SETS = 4  # operands rotate, so that none lies in the cache


def shapes(size):
    hidden, wide, kv = LAYERS[size]
    return [
        (hidden, hidden), (kv, hidden), (kv, hidden), (hidden, hidden), (wide, hidden), (wide, hidden), (hidden, wide),
        (hidden,), (hidden,),
    ]  # fmt: skip


def tensors(bench, size, dtype, ways=1):
    made = []
    for shape in shapes(size):
        count = torch.Size(shape).numel() // ways
        values = bench.random(count).to(dtype, copy=True)
        made.append(values.view(-1, *shape[1:]) if ways > 1 else values.view(shape))
    return made


def copies(bench, size, ways):
    sets = range(SETS)
    parts = [torch.Size(s).numel() // ways for s in shapes(size)]
    shard = sum(parts)
    count = shard * ways
    gathered = [bench.random(count).clone().view(ways, -1) for _ in sets]
    whole = [[torch.empty(p * ways, device=bench.device, dtype=torch.bfloat16) for p in parts] for _ in sets]
    views = [[w.view(ways, -1) for w in one] for one in whole]
    keys = {"m": count, "groups": ways}
    bench.measure(
        "copy", "pytorch", "split-with-sizes-copy",
        lambda i: torch.split_with_sizes_copy(gathered[i % SETS], parts, dim=1, out=views[i % SETS]),
        sets=SETS, in_graph=False, burst_ms=10.0, bytes_read=2 * count, bytes_written=2 * count, output="bf16", **keys,
    )  # fmt: skip
    gradients = [tensors(bench, size, torch.bfloat16) for _ in sets]
    for form in (torch.bfloat16, torch.float32):
        out = [torch.empty(ways, shard, device=bench.device, dtype=form) for _ in sets]
        bench.measure(
            "copy", "pytorch", "chunk-cat",
            lambda i, out=out: torch._chunk_cat(gradients[i % SETS], dim=0, num_chunks=ways, out=out[i % SETS]),
            sets=SETS, in_graph=False, burst_ms=10.0, bytes_read=2 * count,
            bytes_written=count * out[0].element_size(), output=str(form)[6:], **keys,
        )  # fmt: skip
    own = [tensors(bench, size, torch.float32, ways) for _ in sets]
    into = [[torch.empty_like(t, dtype=torch.bfloat16) for t in one] for one in own]
    bench.measure(
        "copy", "pytorch", "copy-in",
        lambda i: torch._foreach_copy_(into[i % SETS], own[i % SETS]),
        sets=SETS, in_graph=False, burst_ms=10.0, bytes_read=4 * shard, bytes_written=2 * shard, output="bf16", **keys,
    )  # fmt: skip


def divide(bench):
    sets = range(SETS)
    for form in (torch.bfloat16, torch.float32):
        grads = [bench.random(25 << 19).to(form, copy=True) for _ in sets]
        bucket = [torch.empty_like(g) for g in grads]
        bench.measure(
            "copy", "pytorch", "divide",
            lambda i, grads=grads, bucket=bucket: torch.mul(grads[i % SETS], 0.5, out=bucket[i % SETS]),
            sets=SETS, in_graph=False, burst_ms=10.0, bytes_read=grads[0].nbytes, bytes_written=grads[0].nbytes,
            output=str(form)[6:],
        )  # fmt: skip


def update(bench, size, form):
    """The fused AdamW of four layers, whose tensors and states are all of one format."""
    layers = [torch.nn.Parameter(t) for _ in range(4) for t in tensors(bench, size, form)]
    for p in layers:
        p.grad = torch.randn_like(p) * 1e-3
    optimizer = torch.optim.AdamW(layers, lr=1e-5, fused=True)
    optimizer.step()
    total = sum(p.nbytes for p in layers)
    bench.measure(
        "update", "pytorch", "adamw-fused", lambda i: optimizer.step(), in_graph=False, burst_ms=20.0,
        bytes_read=4 * total, bytes_written=3 * total, output=str(form)[6:], m=sum(p.numel() for p in layers),
    )  # fmt: skip


def sharding(bench):
    for size in ("1b", "8b") if bench.once else LAYERS:
        for ways in (2, 8):
            bench.case(f"{size} x {ways}", lambda size=size, ways=ways: copies(bench, size, ways))
        for form in (torch.bfloat16, torch.float32):
            bench.case(f"{size} {form}", lambda size=size, form=form: update(bench, size, form))
    bench.case("divide", lambda: divide(bench))
