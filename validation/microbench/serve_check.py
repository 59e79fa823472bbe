# SPDX-License-Identifier: Apache-2.0
# Holds the serving engine's kernels and whole models to plain fp32 references.
"""Lines of record `check`: `error` is the norm of the difference over the norm of the reference, `bound` what
it may be. Kernels with bf16 results lie at 1e-3 to 5e-3. Logits of whole models lie higher: rounding to bf16
alone gives 0.02 over Llama 3.2 1B's 16 layers and 0.04 over Llama 3.1 8B's 32 with such weights. `equal`: the
share of tokens that come out the same where two ways must agree. A check that fails is a line with ok false.
"""

import torch
import torch.nn.functional as F

import serve_kernels as kernels
from bench import relative_error
from serve_experts import BLOCKED, expert_layer, route
from serve_scheduler import PAGE, Plan, Request, blocks_for


def report(session, what, error, bound, **keys):
    ok = error == error and error <= bound
    session.out.line("check", id=f"check/{what}", error=error, bound=bound, ok=ok, **keys)
    session.note(f"check {what}: {error:.2g} of at most {bound:.2g}{'' if ok else ' FAILED'}")


def scattered(lengths, device, kv, size, seed):
    """A cache whose blocks are in random order, its block tables, and its keys and values by sequence."""
    torch.manual_seed(seed)
    counts = [blocks_for(n) for n in lengths]
    total = sum(counts) + 3
    order = torch.randperm(total)
    keys, values = (torch.randn(total, kv, PAGE, size, device=device).bfloat16() for _ in range(2))
    tables = torch.zeros(len(lengths), -(-max(counts) // 32) * 32, dtype=torch.int32)
    plain, at = [], 0
    for i, count in enumerate(counts):
        blocks = order[at : at + count]
        tables[i, :count] = blocks.int()
        at += count
        there = blocks.to(device)
        plain.append(
            [
                c[there].transpose(0, 1).reshape(kv, count * PAGE, size)[:, : lengths[i]].float()
                for c in (keys, values)
            ]
        )
    return keys, values, tables.to(device), plain


def plain_attention(q, keys, values, start):
    """q: [rows, heads, size] at positions from start; fp32."""
    rows, heads, size = q.shape
    k, v = (x.repeat_interleave(heads // x.shape[0], 0) for x in (keys, values))
    score = q.float().transpose(0, 1) @ k.transpose(1, 2) * size**-0.5
    seen = (
        torch.arange(k.shape[1], device=q.device)[None, :]
        <= start + torch.arange(rows, device=q.device)[:, None]
    )
    return (
        (score.masked_fill(~seen, float("-inf")).softmax(-1) @ v)
        .transpose(0, 1)
        .reshape(rows, heads * size)
    )


def check_decode(session, heads, kv, size, lengths):
    device = session.device
    keys, values, tables, plain = scattered([max(n, 1) for n in lengths], device, kv, size, 3)
    qkv = torch.randn(len(lengths), (heads + 2 * kv) * size, device=device).bfloat16()
    seats = torch.arange(len(lengths), device=device, dtype=torch.int32)
    there = torch.tensor(lengths, device=device, dtype=torch.int32)
    expected = torch.cat(
        [
            (
                plain_attention(qkv[i : i + 1, : heads * size].view(1, heads, size), *plain[i], n - 1)
                if n
                else torch.zeros(1, heads * size, device=device)
            )
            for i, n in enumerate(lengths)
        ]
    )
    for splits in (1, 4, 64):
        out = torch.full((len(lengths), heads * size), float("nan"), device=device, dtype=torch.bfloat16)
        kernels.decode_attention(qkv, keys, values, tables, seats, there, out, heads, kv, size, splits)
        report(
            session,
            f"decode-attention/h{heads}-kv{kv}-d{size}-splits{splits}",
            relative_error(out, expected),
            6e-3,
        )


def check_chunk(session, heads, kv, size, chunks):
    """chunks: (history, length); rows begin behind three decodes' rows."""
    device = session.device
    keys, values, tables, plain = scattered([h + n for h, n in chunks], device, kv, size, 5)
    rows = 3 + sum(n for _, n in chunks)
    qkv = torch.randn(rows, (heads + 2 * kv) * size, device=device).bfloat16()
    tile = kernels.tile_rows(rows - 3)
    tiles, expected, row = [], [torch.zeros(3, heads * size, device=device)], 3
    for i, (history, n) in enumerate(chunks):
        tiles += [(row + r, min(tile, n - r), history + r, i) for r in range(0, n, tile)]
        expected.append(
            plain_attention(qkv[row : row + n, : heads * size].view(n, heads, size), *plain[i], history)
        )
        row += n
    out = torch.full((rows, heads * size), float("nan"), device=device, dtype=torch.bfloat16)
    out[:3] = 0
    kernels.chunk_attention(
        qkv,
        keys,
        values,
        tables,
        torch.tensor(tiles, device=device, dtype=torch.int32),
        out,
        heads,
        kv,
        size,
        rows - 3,
    )
    report(
        session,
        f"chunk-attention/h{heads}-kv{kv}-d{size}-rows{rows - 3}",
        relative_error(out, torch.cat(expected)),
        6e-3,
    )


def check_experts(session, rows, experts, topk, hidden, ffn):
    device = session.device
    x = torch.randn(rows, hidden, device=device).bfloat16()
    router, up, down = (
        (0.05 * torch.randn(*s, device=device)).bfloat16()
        for s in ((experts, hidden), (experts, 2 * ffn, hidden), (experts, hidden, ffn))
    )
    keys = torch.randint(0, 1 << 20, (rows,), device=device, dtype=torch.int32)
    numbers = torch.arange(1, experts + 1, device=device, dtype=torch.int32)
    identity = torch.arange(BLOCKED * topk, device=device, dtype=torch.int32)
    found = expert_layer(x, keys, 3, router, up, down, topk, numbers, identity)
    ids, weights = route(x @ router.t(), keys, 3, topk)
    expected = plain_experts(x.float(), ids.view(rows, topk).long(), weights.view(rows, topk), up, down)
    name = f"experts/rows{rows}-e{experts}-top{topk}"
    report(session, name, relative_error(found, expected), 1.2e-2)
    distinct = min(len(set(row)) for row in ids.view(rows, topk).tolist())
    report(session, name + "/distinct", float(topk - distinct), 0.0, reached=len(set(ids.tolist())))


def plain_experts(x, ids, weights, up, down):
    out = torch.zeros(x.shape[0], down.shape[1], device=x.device)
    share = weights / weights.sum(1, keepdim=True)
    for expert in ids.unique().tolist():
        row, choice = (ids == expert).nonzero(as_tuple=True)
        gate, value = (x[row] @ up[expert].float().t()).chunk(2, -1)
        out.index_add_(0, row, (F.silu(gate) * value) @ down[expert].float().t() * share[row, choice, None])
    return out


def norm_of(x, scale, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * scale.float()


def turned(x, cosines, sines):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosines - b * sines, b * cosines + a * sines], -1)


def plain_logits(model, tokens, keys):
    """fp32 logits of every position of one sequence, without a cache."""
    s, rows = model.shape, tokens.shape[0]
    cosines, sines = (t[:rows, None, :] for t in model.rotary)
    x = model.embedding[tokens].float()
    for i, one in enumerate(model.layers):
        qkv = norm_of(x, one.norm1, 1e-5) @ one.qkv.float().t()
        q, k, v = (
            part.view(rows, -1, s.size)
            for part in qkv.split([s.heads * s.size, s.kv_heads * s.size, s.kv_heads * s.size], -1)
        )
        if s.qk_norm:
            q, k = norm_of(q, one.q_norm, 1e-6), norm_of(k, one.k_norm, 1e-6)
        q, k = turned(q, cosines, sines), turned(k, cosines, sines)
        x = x + plain_attention(q, k.transpose(0, 1), v.transpose(0, 1), 0) @ one.out.float().t()
        y = norm_of(x, one.norm2, 1e-5)
        if s.experts:
            ids, weights = route(y.bfloat16() @ one.router.t(), keys, i, s.topk)
            x = x + plain_experts(y, ids.view(rows, -1).long(), weights.view(rows, -1), one.up, one.down)
        else:
            gate, value = (y @ one.up.float().t()).chunk(2, -1)
            x = x + (F.silu(gate) * value) @ one.down.float().t()
    return norm_of(x, model.norm, 1e-5) @ model.head.float().t()


def check_model(session, runner, prompt=150, cuts=(64, 37)):
    """Chunks, then decodes of one sequence, beside a plain model over all of its tokens."""
    request = Request(5, 0.0, prompt, 8)
    request.seat = 2 % runner.max_sequences
    taken = [b * 3 % runner.blocks for b in range(blocks_for(prompt + 8))]
    rows, tokens, at = [], [], 0
    for length in (*cuts, prompt - sum(cuts), 1, 1, 1):
        plan = Plan()
        need = blocks_for(at + length)
        plan.table = [(request.seat, i, taken[i]) for i in range(len(request.blocks), need)]
        request.blocks = taken[:need]
        request.done = at
        if at < prompt:
            plan.chunks.append((request, at, length, True))
        else:
            plan.decodes.append(request)
        sizes, runner.sizes = runner.sizes, []
        packed = runner.pack(plan)
        runner.sizes = sizes
        numbers = torch.from_numpy(packed.numbers.copy()).to(runner.device)
        where = packed.pieces()
        if packed.entries:
            kernels.write_table(runner.tables, numbers[where[8] : where[9]], packed.entries)
        logits = runner.model.logits(runner.batch(numbers, packed), runner.cache, runner.tables)
        tokens += numbers[where[0] : where[0] + packed.rows].tolist()
        at += length
        rows.append((at - 1, logits[0].float()))
        if at >= prompt:
            request.emit(at, int(logits[0].argmax()))
    keys = (torch.arange(at, device=runner.device) + request.id * 40503).bitwise_and(0xFFFFF).int()
    expected = plain_logits(runner.model, torch.tensor(tokens, device=runner.device), keys)
    for kind, picked in (("chunks", rows[: len(cuts) + 1]), ("decodes", rows[len(cuts) + 1 :])):
        found = torch.stack([r for _, r in picked])
        report(
            session,
            f"model/{runner.shape.name}/{kind}",
            relative_error(found, expected[[at for at, _ in picked]]),
            0.1,
            positions=[at for at, _ in picked],
        )


def check_graphs(session, runner):
    """The same decodes in a graph with padding and launched one by one."""
    if not runner.sizes:
        return
    plan = Plan()
    for seat in range(min(19, runner.max_sequences)):
        request = Request(seat, 0.0, 100, 2)
        request.seat, request.done, request.last = seat, 90 + seat, 11 * seat
        request.blocks = [(7 * seat + i) % runner.blocks for i in range(7)]
        plan.table += [(seat, i, b) for i, b in enumerate(request.blocks)]
        plan.decodes.append(request)
    in_graph = runner.step(plan)[0]
    sizes, runner.sizes = runner.sizes, []
    alone = runner.step(plan)[0]
    runner.sizes = sizes
    other = sum(a != b for a, b in zip(in_graph, alone)) / len(alone)
    report(session, f"graph/{runner.shape.name}", other, 0.2, equal=1 - other)


def check(session, runner):
    quick = session.device.type == "cpu"
    shapes = [(8, 4, 32)] if quick else [(32, 8, 128), (32, 8, 64), (32, 4, 128)]
    lengths = [1, 16, 0, 70, 33, 150] if quick else [1, 16, 0, 700, 33, 5000, 1024, 129]
    chunks = [[(0, 5), (20, 70)]] if quick else [[(0, 5), (300, 70), (17, 200)], [(0, 700), (1000, 511)]]
    for heads, kv, size in shapes:
        one = f"h{heads}-kv{kv}-d{size}"
        session.case(f"check/decode/{one}", lambda: check_decode(session, heads, kv, size, lengths))
        for some in chunks:
            session.case(f"check/chunk/{one}", lambda: check_chunk(session, heads, kv, size, some))
    cases = (
        [(5, 8, 2, 128, 128)]
        if quick
        else [
            (1, 128, 8, 256, 256),
            (37, 128, 8, 256, 256),
            (256, 128, 8, 256, 256),
            (700, 128, 8, 256, 256),
        ]
    )
    for case in cases:
        session.case(f"check/experts/{case}", lambda: check_experts(session, *case))
    session.case(f"check/model/{runner.shape.name}", lambda: check_model(session, runner))
    session.case(f"check/graph/{runner.shape.name}", lambda: check_graphs(session, runner))
