# SPDX-License-Identifier: Apache-2.0
# Runs an expert layer of the serving engine: chance chooses the experts, products follow their rows.
"""The router's product is done in full, but chance (a hash of request, position and layer) chooses the
experts, so that rows are spread as if each row drew `topk` of them; the product only gives their weights.
Up to `BLOCKED` rows the products are a Triton kernel over blocks of 16 rows of one expert, as serving
engines have it; above, rows are sorted and torch._grouped_mm (CUTLASS) multiplies. Both can be captured:
nothing waits for the host.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from serve_kernels import launch, swiglu

BLOCKED = 256
BM = 16


@triton.jit(do_not_specialize=["layer"])
def route_kernel(logits, keys, ids, weights, layer, EXPERTS: tl.constexpr, TOPK: tl.constexpr):
    row = tl.program_id(0)
    e = tl.arange(0, EXPERTS)
    logit = tl.load(logits + row * EXPERTS + e).to(tl.float32)
    chance = tl.rand(layer, tl.load(keys + row) * EXPERTS + e)
    top = tl.max(logit, 0)
    for j in tl.static_range(TOPK):
        best = tl.argmax(chance, 0)
        tl.store(ids + row * TOPK + j, best)
        tl.store(weights + row * TOPK + j, tl.exp(tl.sum(tl.where(e == best, logit, 0.0), 0) - top))
        chance = tl.where(e == best, -1.0, chance)


@triton.jit(do_not_specialize=["count"])
def align_kernel(
    ids,
    counts,
    blocks,
    slots,
    count,
    EXPERTS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program: the expert of every block of 16 rows (-1: none) and the row of every slot (-1: none)."""
    e, r, b = tl.arange(0, EXPERTS), tl.arange(0, ROWS), tl.arange(0, BLOCKS)
    tl.store(counts + e, tl.zeros([EXPERTS], tl.int32))
    empty = tl.arange(0, BLOCKS * BLOCK)
    tl.store(slots + empty, tl.full([BLOCKS * BLOCK], -1, tl.int32))
    tl.debug_barrier()
    real = r < count
    mine = tl.load(ids + r, mask=real, other=0)
    rank = tl.atomic_add(counts + mine, 1, mask=real)
    tl.debug_barrier()
    need = (tl.load(counts + e, volatile=True) + BLOCK - 1) // BLOCK
    end = tl.cumsum(need, 0)
    tl.store(counts + EXPERTS + e, end - need)
    passed = tl.sum((end[None, :] <= b[:, None]).to(tl.int32), 1)
    tl.store(blocks + b, tl.where(passed < EXPERTS, passed, -1))
    tl.debug_barrier()
    start = tl.load(counts + EXPERTS + mine, mask=real, other=0, volatile=True)
    tl.store(slots + start * BLOCK + rank, r, mask=real)


@triton.jit
def blocked_kernel(
    x,
    w,
    out,
    blocks,
    slots,
    n,
    k,
    SHARE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """16 rows of one expert times 64 of its columns; row i of `out` comes from row i // SHARE of `x`."""
    block, column = tl.program_id(0), tl.program_id(1)
    expert = tl.load(blocks + block).to(tl.int64)
    if expert < 0:
        return
    rows = tl.load(slots + block * BM + tl.arange(0, BM))
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    xs = x + (rows // SHARE)[:, None] * k + depth[None, :]
    ws = w + expert * n * k + columns[None, :] * k + depth[:, None]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        sums += tl.dot(tl.load(xs, mask=rows[:, None] >= 0, other=0.0), tl.load(ws))
        xs += BK
        ws += BK
    tl.store(out + rows[:, None] * n + columns[None, :], sums.to(tl.bfloat16), mask=rows[:, None] >= 0)


@triton.jit
def merge_kernel(y, weights, places, out, width, TOPK: tl.constexpr, BLOCK: tl.constexpr):
    """The weighted sum of a row's experts; `places` tells where each (row, choice) lies in `y`."""
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < width
    sums = tl.zeros([BLOCK], tl.float32)
    total = 0.0
    for j in tl.static_range(TOPK):
        weight = tl.load(weights + row * TOPK + j)
        place = tl.load(places + row * TOPK + j).to(tl.int64)
        sums += weight * tl.load(y + place * width + at, mask=mask, other=0.0).to(tl.float32)
        total += weight
    tl.store(out + row.to(tl.int64) * width + at, (sums / total).to(tl.bfloat16), mask=mask)


def route(logits, keys, layer, topk):
    rows, experts = logits.shape
    ids = torch.empty(rows * topk, device=logits.device, dtype=torch.int32)
    weights = torch.empty(rows * topk, device=logits.device, dtype=torch.float32)
    launch(
        route_kernel, (rows,), (logits, keys, ids, weights, layer), EXPERTS=experts, TOPK=topk, num_warps=1
    )
    return ids, weights


def blocked_products(x, up, down, ids, topk):
    count = x.shape[0] * topk
    experts, ffn2, hidden = up.shape
    most = triton.next_power_of_2(min(count, experts) + count // BM)
    counts = torch.empty(2 * experts, device=x.device, dtype=torch.int32)
    blocks = torch.empty(most, device=x.device, dtype=torch.int32)
    slots = torch.empty(most * BM, device=x.device, dtype=torch.int32)
    launch(
        align_kernel,
        (1,),
        (ids, counts, blocks, slots, count),
        EXPERTS=experts,
        ROWS=triton.next_power_of_2(count),
        BLOCKS=most,
        BLOCK=BM,
        num_warps=8,
    )
    both = torch.empty(count, ffn2, device=x.device, dtype=x.dtype)
    y = torch.empty(count, hidden, device=x.device, dtype=x.dtype)
    size = dict(BM=BM, BN=64, BK=128, num_warps=4, num_stages=4)
    launch(
        blocked_kernel,
        (most, ffn2 // 64),
        (x, up, both, blocks, slots, ffn2, hidden),
        (ffn2, hidden),
        SHARE=topk,
        **size,
    )
    launch(
        blocked_kernel,
        (most, hidden // 64),
        (swiglu(both), down, y, blocks, slots, hidden, ffn2 // 2),
        (hidden, ffn2 // 2),
        SHARE=1,
        **size,
    )
    return y


def sorted_products(x, up, down, ids, topk, numbers, places):
    """`numbers`: 1 to experts; fills `places`, where each (row, choice) lies in the result."""
    ordered, order = torch.sort(ids)
    ends = torch.searchsorted(ordered, numbers, out_int32=True)
    places[order] = torch.arange(ids.shape[0], device=x.device, dtype=torch.int32)
    both = torch._grouped_mm(x[order // topk], up.transpose(-2, -1), offs=ends)
    return torch._grouped_mm(swiglu(both), down.transpose(-2, -1), offs=ends)


def expert_layer(x, keys, layer, router, up, down, topk, numbers, identity):
    """x: normed rows; `identity`: 0, 1, 2... of at least BLOCKED * topk numbers."""
    ids, weights = route(F.linear(x, router), keys, layer, topk)
    rows, width = x.shape
    if rows <= BLOCKED:
        y, places = blocked_products(x, up, down, ids, topk), identity
    else:
        places = torch.empty(rows * topk, device=x.device, dtype=torch.int32)
        y = sorted_products(x, up, down, ids, topk, numbers, places)
    out = torch.empty_like(x)
    launch(
        merge_kernel,
        (rows, -(-width // 1024)),
        (y, weights, places, out, width),
        (width,),
        TOPK=topk,
        BLOCK=1024,
        num_warps=4,
    )
    return out
