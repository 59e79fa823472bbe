# SPDX-License-Identifier: Apache-2.0
# Holds the Triton kernels of the serving engine: attention over a paged cache, norm, rotary, SwiGLU.
"""The cache of a layer is [block, key-value head, 16 tokens, size], keys and values apart. `table` has a
row for every seat; `seats` tells the row of each decode. Rows of a step come in this order: decodes, then
chunks.
"""

import torch
import triton
import triton.language as tl

PAGE = 16
MOST_SPLITS = 64
LOG2E = 1.4426950408889634
# How the attention kernels are cut: queries and keys of a turn, warps, depth of the software pipeline; the
# best of several on an H100. Chunks by tile rows and size of a head (64 stands for up to 64).
DECODE = dict(BN=128, num_warps=4, num_stages=3)
CHUNK = {
    (64, 64): dict(BN=128, num_warps=4, num_stages=2),
    (64, 128): dict(BN=64, num_warps=4, num_stages=3),
    (128, 64): dict(BN=64, num_warps=8, num_stages=3),
    (128, 128): dict(BN=128, num_warps=8, num_stages=3),
}


@triton.jit
def add_norm_kernel(x, delta, scale, out, width, eps, ADD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < width
    v = tl.load(x + row * width + at, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        v += tl.load(delta + row * width + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(x + row * width + at, v.to(tl.bfloat16), mask=mask)
    mean = tl.sum(v * v, 0) / width
    y = v / tl.sqrt(mean + eps) * tl.load(scale + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, y.to(tl.bfloat16), mask=mask)


@triton.jit
def swiglu_kernel(both, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < width
    gate = tl.load(both + row * 2 * width + at, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(both + row * 2 * width + width + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, (gate / (1.0 + tl.exp(-gate)) * value).to(tl.bfloat16), mask=mask)


@triton.jit
def rotary_write_kernel(
    qkv,
    positions,
    slots,
    cosines,
    sines,
    keys,
    values,
    q_scale,
    k_scale,
    eps,
    HEADS: tl.constexpr,
    KV: tl.constexpr,
    D: tl.constexpr,
    QK_NORM: tl.constexpr,
    PAGED: tl.constexpr,
):
    """Rotates queries in place and keys on their way to the cache; four heads of one row a program."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * 4 + tl.arange(0, 4)
    half = tl.arange(0, D // 2)
    at = qkv + row * ((HEADS + 2 * KV) * D) + head[:, None] * D + half[None, :]
    a = tl.load(at).to(tl.float32)
    b = tl.load(at + D // 2).to(tl.float32)
    first = tl.program_id(1) * 4
    if first < HEADS + KV:
        if QK_NORM:
            scale = q_scale if first < HEADS else k_scale
            size = 1.0 / tl.sqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / D + eps)
            a = a * size[:, None] * tl.load(scale + half).to(tl.float32)[None, :]
            b = b * size[:, None] * tl.load(scale + D // 2 + half).to(tl.float32)[None, :]
        position = tl.load(positions + row)
        cosine = tl.load(cosines + position * (D // 2) + half)[None, :]
        sine = tl.load(sines + position * (D // 2) + half)[None, :]
        turned = a * cosine - b * sine
        b = b * cosine + a * sine
        a = turned
    if first < HEADS:
        tl.store(at, a.to(tl.bfloat16))
        tl.store(at + D // 2, b.to(tl.bfloat16))
    else:
        slot = tl.load(slots + row)
        if slot >= 0:
            block = (slot // PAGED).to(tl.int64)
            if first < HEADS + KV:
                place = ((block * KV + head - HEADS) * PAGED + slot % PAGED) * D
                to = keys + place[:, None] + half[None, :]
            else:
                place = ((block * KV + head - HEADS - KV) * PAGED + slot % PAGED) * D
                to = values + place[:, None] + half[None, :]
            tl.store(to, a.to(tl.bfloat16))
            tl.store(to + D // 2, b.to(tl.bfloat16))


@triton.jit(do_not_specialize=["splits"])
def decode_kernel(
    q,
    keys,
    values,
    table,
    seats,
    lengths,
    out,
    parts,
    stats,
    scale,
    stride,
    splits,
    HEADS: tl.constexpr,
    KV: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    PAGED: tl.constexpr,
    BN: tl.constexpr,
    ONE: tl.constexpr,
):
    """One split of one sequence and key-value head; the heads that share it are rows of one product."""
    b, h, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length, seat = tl.load(lengths + b), tl.load(seats + b)
    each = tl.cdiv(tl.cdiv(length, splits), BN) * BN
    first = s * each
    last = tl.minimum(first + each, length)
    group: tl.constexpr = HEADS // KV
    g, d, n = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, BN)
    heads = h * group + g
    real = g < group
    rows = tl.load(
        q + b.to(tl.int64) * ((HEADS + 2 * KV) * D) + heads[:, None] * D + d[None, :],
        mask=real[:, None],
        other=0.0,
    )
    most = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, D], tl.float32)
    for at in range(first, last, BN):
        token = at + n
        inside = token < last
        page = tl.load(table + seat * stride + token // PAGED, mask=inside, other=0).to(tl.int64)
        place = ((page * KV + h) * PAGED + token % PAGED) * D
        k = tl.load(keys + place[None, :] + d[:, None], mask=inside[None, :], other=0.0)
        score = tl.where(inside[None, :], tl.dot(rows, k) * scale, float("-inf"))
        new = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp2(score - new[:, None])
        fade = tl.exp2(most - new)
        total = total * fade + tl.sum(weight, 1)
        v = tl.load(values + place[:, None] + d[None, :], mask=inside[:, None], other=0.0)
        sums = sums * fade[:, None] + tl.dot(weight.to(tl.bfloat16), v)
        most = new
    if ONE:
        sums = sums / tl.maximum(total, 1e-30)[:, None]
        tl.store(
            out + b.to(tl.int64) * (HEADS * D) + heads[:, None] * D + d[None, :],
            sums.to(tl.bfloat16),
            mask=real[:, None],
        )
    else:
        part = (b * HEADS + heads) * splits + s
        tl.store(stats + part * 2, most, mask=real)
        tl.store(stats + part * 2 + 1, total, mask=real)
        if first < last:
            tl.store(parts + part[:, None] * D + d[None, :], sums, mask=real[:, None])


@triton.jit
def combine_kernel(parts, stats, out, HEADS: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr):
    head = tl.program_id(0)
    s, d = tl.arange(0, SPLITS), tl.arange(0, D)
    part = head * SPLITS + s
    most, total = tl.load(stats + part * 2), tl.load(stats + part * 2 + 1)
    used = total > 0.0
    top = tl.maximum(tl.max(most, 0), -1e30)
    weight = tl.where(used, tl.exp2(most - top), 0.0)
    sums = tl.load(parts + part[:, None] * D + d[None, :], mask=used[:, None], other=0.0)
    value = tl.sum(sums * weight[:, None], 0) / tl.maximum(tl.sum(total * weight, 0), 1e-30)
    tl.store(out + head * D + d, value.to(tl.bfloat16))


@triton.jit
def chunk_kernel(
    q,
    keys,
    values,
    table,
    tiles,
    out,
    scale,
    stride,
    HEADS: tl.constexpr,
    KV: tl.constexpr,
    D: tl.constexpr,
    PAGED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """A tile of one chunk's queries, one head: against all that the block table holds up to each query."""
    tile = tl.num_programs(0) - 1 - tl.program_id(0)  # those with the longest history first
    head = tl.program_id(1)
    kv = head // (HEADS // KV)
    row, count = tl.load(tiles + tile * 4), tl.load(tiles + tile * 4 + 1)
    start, seat = tl.load(tiles + tile * 4 + 2), tl.load(tiles + tile * 4 + 3)
    r, d, n = tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    real = r < count
    rows = row.to(tl.int64) + r
    x = tl.load(
        q + rows[:, None] * ((HEADS + 2 * KV) * D) + head * D + d[None, :], mask=real[:, None], other=0.0
    )
    position, end = start + r, start + count
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, D], tl.float32)
    whole = (start + 1) // BN * BN  # keys that every query of the tile sees
    for at in range(0, whole, BN):
        token = at + n
        page = tl.load(table + seat * stride + token // PAGED).to(tl.int64)
        place = ((page * KV + kv) * PAGED + token % PAGED) * D
        score = tl.dot(x, tl.load(keys + place[None, :] + d[:, None])) * scale
        new = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp2(score - new[:, None])
        fade = tl.exp2(most - new)
        total = total * fade + tl.sum(weight, 1)
        sums = sums * fade[:, None] + tl.dot(
            weight.to(tl.bfloat16), tl.load(values + place[:, None] + d[None, :])
        )
        most = new
    for at in range(whole, end, BN):
        token = at + n
        inside = token < end
        page = tl.load(table + seat * stride + token // PAGED, mask=inside, other=0).to(tl.int64)
        place = ((page * KV + kv) * PAGED + token % PAGED) * D
        k = tl.load(keys + place[None, :] + d[:, None], mask=inside[None, :], other=0.0)
        seen = inside[None, :] & (token[None, :] <= position[:, None])
        score = tl.where(seen, tl.dot(x, k) * scale, float("-inf"))
        new = tl.maximum(most, tl.maximum(tl.max(score, 1), -1e30))
        weight = tl.exp2(score - new[:, None])
        fade = tl.exp2(most - new)
        total = total * fade + tl.sum(weight, 1)
        v = tl.load(values + place[:, None] + d[None, :], mask=inside[:, None], other=0.0)
        sums = sums * fade[:, None] + tl.dot(weight.to(tl.bfloat16), v)
        most = new
    sums = sums / tl.maximum(total, 1e-30)[:, None]
    tl.store(
        out + rows[:, None] * (HEADS * D) + head * D + d[None, :], sums.to(tl.bfloat16), mask=real[:, None]
    )


@triton.jit(do_not_specialize=["count"])
def table_kernel(table, entries, count, BLOCK: tl.constexpr):
    """Writes new entries of block tables: pairs of a flat place and a block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    place = tl.load(entries + at * 2, mask=mask, other=0)
    tl.store(table + place, tl.load(entries + at * 2 + 1, mask=mask, other=0), mask=mask)


class Launcher:
    """Launches a Triton kernel past Triton's own look-up, which takes the host longer than the launch.

    `key` holds the integers that Triton may specialise a kernel on. All pointers are multiples of 16 bytes.
    """

    def __init__(self):
        self.known = {}

    def __call__(self, kernel, grid, args, key=(), **fixed):
        name = (kernel, key, tuple(fixed.values()))
        found = self.known.get(name)
        if found is None:
            compiled = kernel[grid](*args, **fixed)
            if compiled is not None:  # None: Triton's interpreter
                constants = tuple(fixed[n] for n in kernel.arg_names if n in fixed)
                self.known[name] = (compiled, compiled.function, compiled.packed_metadata, constants)
            return
        compiled, function, metadata, constants = found
        x, y, z = (*grid, 1, 1)[:3]
        stream = torch._C._cuda_getCurrentRawStream(args[0].device.index)
        compiled.run(x, y, z, stream, function, metadata, None, None, None, *args, *constants)


launch = Launcher()


def add_norm(x, delta, scale, eps=1e-5):
    """x += delta (where there is one) in place; the norm of x."""
    out = torch.empty_like(x)
    width = x.shape[1]
    launch(
        add_norm_kernel,
        (x.shape[0],),
        (x, x if delta is None else delta, scale, out, width, eps),
        (width,),
        ADD=delta is not None,
        BLOCK=triton.next_power_of_2(width),
        num_warps=8 if width > 2048 else 4,
    )
    return out


def swiglu(both):
    rows, width = both.shape[0], both.shape[1] // 2
    out = torch.empty(rows, width, device=both.device, dtype=both.dtype)
    launch(swiglu_kernel, (rows, -(-width // 1024)), (both, out, width), (width,), BLOCK=1024, num_warps=4)
    return out


def rotary_write(qkv, positions, slots, rotary, keys, values, q_scale, k_scale, heads, kv, size):
    args = (
        qkv,
        positions,
        slots,
        rotary[0],
        rotary[1],
        keys,
        values,
        qkv if q_scale is None else q_scale,
        qkv if k_scale is None else k_scale,
        1e-6,
    )
    launch(
        rotary_write_kernel,
        (qkv.shape[0], (heads + 2 * kv) // 4),
        args,
        HEADS=heads,
        KV=kv,
        D=size,
        QK_NORM=q_scale is not None,
        PAGED=PAGE,
        num_warps=4,
    )


def splits_for(sequences, kv, processors):
    """Parts of each sequence's keys: the power of two that makes four programs a processor, at most 64."""
    wanted = 4 * processors / (sequences * kv)
    splits = 1
    while splits < wanted and splits < MOST_SPLITS:
        splits *= 2
    return splits


def decode_attention(q, keys, values, table, seats, lengths, out, heads, kv, size, splits):
    """Rows of `q` are qkv rows of decodes; lengths count the new token; a length of 0 gives zeros."""
    sequences, stride = seats.shape[0], table.shape[1]
    scale = LOG2E * size**-0.5
    parts = stats = out
    if splits > 1:
        parts = torch.empty(sequences * heads * splits, size, device=q.device, dtype=torch.float32)
        stats = torch.empty(sequences * heads * splits, 2, device=q.device, dtype=torch.float32)
    launch(
        decode_kernel,
        (sequences, kv, splits),
        (q, keys, values, table, seats, lengths, out, parts, stats, scale, stride, splits),
        (stride,),
        HEADS=heads,
        KV=kv,
        D=size,
        ROWS=max(16, heads // kv),
        PAGED=PAGE,
        ONE=splits == 1,
        **DECODE,
    )
    if splits > 1:
        launch(
            combine_kernel,
            (sequences * heads,),
            (parts, stats, out),
            HEADS=heads,
            D=size,
            SPLITS=splits,
            num_warps=4,
        )


def tile_rows(rows):
    """Rows of a query tile for chunks of so many rows in all."""
    return 128 if rows >= 1024 else 64


def chunk_attention(q, keys, values, table, tiles, out, heads, kv, size, rows):
    """Rows of `q` and `out` are the whole step's; a tile is (first row, rows, first position, seat)."""
    tile, stride = tile_rows(rows), table.shape[1]
    launch(
        chunk_kernel,
        (tiles.shape[0], heads),
        (q, keys, values, table, tiles, out, LOG2E * size**-0.5, stride),
        (stride,),
        HEADS=heads,
        KV=kv,
        D=size,
        PAGED=PAGE,
        BM=tile,
        **CHUNK[tile, 64 if size <= 64 else 128],
    )


def write_table(table, entries, count):
    launch(table_kernel, (-(-count // 256),), (table, entries, count), BLOCK=256)
