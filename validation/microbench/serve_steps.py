# SPDX-License-Identifier: Apache-2.0
# Times steps of the serving engine in isolation, and its kernels alone.
"""grid: a step of so many decodes at a context and one chunk behind a history of the same length. Each is
run as the engine runs it (gpu_us between events around what is launched, pack_us and launch_us of the host,
wall_us from packing to tokens), and with the queue filled while the device sleeps (queued_us: what the
device alone needs). kernels: calls in CUDA graphs that rotate over the layers' weights and caches, so that
these come from memory.
"""

import time

import torch
import torch.nn.functional as F

import serve_kernels as kernels
from serve_experts import expert_layer
from serve_scheduler import PAGE, Plan, Request, blocks_for

DECODES = (0, 1, 4, 16, 64, 128, 256)
CHUNKS = (0, 128, 512, 2048)
CONTEXTS = (256, 1024, 4096, 16384)


def median(values):
    return sorted(values)[len(values) // 2]


def three(values):
    return [median(values), min(values), max(values)]


def fixed_plan(runner, decodes, chunk, context):
    """A plan in blocks of its own, or None where the pool is too small."""
    plan, at = Plan(), 0
    for seat in range(decodes + (1 if chunk else 0)):
        is_chunk = seat == decodes
        tokens = context + (chunk if is_chunk else 0)
        request = Request(seat, 0.0, tokens, 2)
        request.seat, request.done = seat, context if is_chunk else context - 1
        count = blocks_for(tokens)
        if at + count > runner.blocks or tokens > runner.context or seat >= runner.max_sequences:
            return None
        request.blocks = list(range(at, at + count))
        at += count
        plan.table += [(seat, i, b) for i, b in enumerate(request.blocks)]
        if is_chunk:
            plan.chunks.append((request, context, chunk, True))
        else:
            plan.decodes.append(request)
    return plan


def time_plan(runner, plan, repeats=5):
    """Median, least and most of each time, in microseconds."""
    runner.step(plan)
    plan.table = []
    runner.step(plan)
    found = {name: [] for name in ("gpu_us", "pack_us", "launch_us", "wall_us", "queued_us")}
    for _ in range(repeats):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        zero = time.perf_counter()
        packed = runner.pack(plan)
        _, begin, launched, end, _ = runner.execute(packed, pair)
        for name, value in zip(
            found,
            (
                1e3 * pair[0].elapsed_time(pair[1]),
                1e6 * (begin - zero),
                1e6 * (launched - begin),
                1e6 * (end - zero),
            ),
        ):
            found[name].append(value)
    host = median(found["launch_us"])
    for _ in range(max(3, repeats // 2)):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        torch.cuda._sleep(int(min(2e8, 3e3 * host + 2e5)))
        pair[0].record()
        runner.launch(packed)
        pair[1].record()
        pair[1].synchronize()
        found["queued_us"].append(1e3 * pair[0].elapsed_time(pair[1]))
    return {name: three(values) for name, values in found.items()}


def grid(session, runner):
    name = runner.shape.name
    decodes, chunks, contexts = DECODES, CHUNKS, CONTEXTS
    if session.quick:
        decodes, chunks, contexts = (0, 4, 64), (0, 512), (256, 4096)
    elif session.options.thin:
        decodes, contexts = (0, 1, 16, 64, 256), (256, 4096, 16384)
    for context in contexts:
        for chunk in chunks:
            for count in decodes:
                if count or chunk:
                    one = f"grid/{name}/d{count}-c{chunk}-x{context}"
                    session.case(one, lambda: grid_case(session, runner, one, count, chunk, context))
    for count in (d for d in decodes if d):  # the same steps launched kernel by kernel
        one = f"grid/{name}/d{count}-c0-x1024-eager"
        sizes, runner.sizes = runner.sizes, []
        session.case(one, lambda: grid_case(session, runner, one, count, 0, 1024))
        runner.sizes = sizes


def grid_case(session, runner, one, decodes, chunk, context):
    plan = fixed_plan(runner, decodes, chunk, context)
    if plan is None:
        session.out.line("skipped", id=one, reason="the pool is too small")
        return
    times = time_plan(runner, plan, 3 if session.quick else 5)
    session.sample(
        one,
        "grid",
        model=runner.shape.name,
        decodes=decodes,
        chunk=chunk,
        context=context,
        graph=runner.graph_size(plan),
        **times,
        **session.sensors(),
    )


# ---- kernels alone ----------------------------------------------------------------------------------


def graph_us(call, burst_us=4000.0, repeats=5):
    """Median, least and most microseconds of call(i) inside a CUDA graph of many calls."""

    def measured(work):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        pair[0].record()
        work()
        pair[1].record()
        pair[1].synchronize()
        return 1e3 * pair[0].elapsed_time(pair[1])

    call(0)
    torch.cuda.synchronize()
    once = measured(lambda: (call(1), call(2))) / 2
    calls = int(max(4, min(64, burst_us / max(once, 2.0))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
        for i in range(calls):
            call(i)
    graph.replay()
    found = [measured(graph.replay) / calls for _ in range(repeats)]
    del graph
    return {"time_us": median(found), "low_us": min(found), "high_us": max(found), "calls": calls}


def attention_cases(quick):
    decode = [
        (b, x)
        for x in (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32704)
        for b in (1, 2, 4, 8, 16, 32, 64, 128, 256)
    ]
    chunk = [
        (q, x)
        for x in (0, 512, 2048, 4096, 8192, 16384, 30656)
        for q in (16, 64, 128, 256, 512, 1024, 2048)
    ]
    return (decode[::13], chunk[::9]) if quick else (decode, chunk)


def decode_case(session, runner, batch, context):
    plan = fixed_plan(runner, batch, 0, context)
    if plan is None:
        return
    runner.step(plan)
    model, shape = runner.model, runner.shape
    q = torch.randn(batch, (model.heads + 2 * model.kv) * shape.size, device=runner.device).bfloat16()
    seats = torch.arange(batch, device=runner.device, dtype=torch.int32)
    lengths = torch.full((batch,), context, device=runner.device, dtype=torch.int32)
    out = torch.empty(batch, model.heads * shape.size, device=runner.device, dtype=torch.bfloat16)
    splits = kernels.splits_for(batch, model.kv, model.processors)
    times = graph_us(
        lambda i: kernels.decode_attention(
            q,
            *runner.cache[i % shape.layers],
            runner.tables,
            seats,
            lengths,
            out,
            model.heads,
            model.kv,
            shape.size,
            splits,
        )
    )
    session.sample(
        f"kernels/{shape.name}/decode-b{batch}-x{context}",
        "kernels",
        model=shape.name,
        kind="attention-decode",
        batch=batch,
        heads=model.heads,
        kv_heads=model.kv,
        size=shape.size,
        context=context,
        splits=splits,
        **times,
    )


def chunk_case(session, runner, rows, history):
    plan = fixed_plan(runner, 0, rows, history)
    if plan is None:
        return
    runner.step(plan)
    model, shape, tile = runner.model, runner.shape, kernels.tile_rows(rows)
    q = torch.randn(rows, (model.heads + 2 * model.kv) * shape.size, device=runner.device).bfloat16()
    tiles = torch.tensor(
        [(r, min(tile, rows - r), history + r, 0) for r in range(0, rows, tile)],
        device=runner.device,
        dtype=torch.int32,
    )
    out = torch.empty(rows, model.heads * shape.size, device=runner.device, dtype=torch.bfloat16)
    times = graph_us(
        lambda i: kernels.chunk_attention(
            q,
            *runner.cache[i % shape.layers],
            runner.tables,
            tiles,
            out,
            model.heads,
            model.kv,
            shape.size,
            rows,
        )
    )
    session.sample(
        f"kernels/{shape.name}/chunk-q{rows}-x{history}",
        "kernels",
        model=shape.name,
        kind="attention-chunk",
        rows=rows,
        history=history,
        heads=model.heads,
        kv_heads=model.kv,
        size=shape.size,
        tile=tile,
        **times,
    )


def products(session, runner, rows):
    model, shape = runner.model, runner.shape
    layers, device = model.layers, runner.device
    wanted = {
        "qkv": lambda i: layers[i % len(layers)].qkv,
        "out": lambda i: layers[i % len(layers)].out,
        "head": lambda i: model.head,
    }
    if not shape.experts:
        wanted.update(up=lambda i: layers[i % len(layers)].up, down=lambda i: layers[i % len(layers)].down)
    for role, weight in wanted.items():
        n, k = weight(0).shape
        if role == "head" and rows > runner.max_sequences:
            continue
        x = torch.randn(rows, k, device=device).bfloat16()
        session.sample(
            f"kernels/{shape.name}/{role}-m{rows}",
            "kernels",
            model=shape.name,
            kind="gemm",
            role=role,
            m=rows,
            n=n,
            k=k,
            **graph_us(lambda i: x @ weight(i).t()),
        )
    if shape.experts:
        x = torch.randn(rows, shape.hidden, device=device).bfloat16()
        keys = torch.randint(0, 1 << 20, (rows,), device=device, dtype=torch.int32)

        def layer(i):
            one = layers[i % len(layers)]
            return expert_layer(
                x, keys, i, one.router, one.up, one.down, shape.topk, model.numbers, model.identity
            )

        session.sample(
            f"kernels/{shape.name}/experts-m{rows}",
            "kernels",
            model=shape.name,
            kind="expert-layer",
            rows=rows,
            experts=shape.experts,
            topk=shape.topk,
            hidden=shape.hidden,
            ffn=shape.ffn,
            **graph_us(layer),
        )


def row_kernels(session, runner, rows):
    model, shape, device = runner.model, runner.shape, runner.device

    def random(*size):
        return torch.randn(*size, device=device).bfloat16()

    x, delta, both = random(rows, shape.hidden), random(rows, shape.hidden), random(rows, 2 * model.ffn)
    qkv = random(rows, (model.heads + 2 * model.kv) * shape.size)
    numbers = torch.arange(rows, device=device, dtype=torch.int32)
    one = model.layers[0]
    wanted = {
        "add-norm": lambda i: kernels.add_norm(x, delta, model.norm),
        "rotary-write": lambda i: kernels.rotary_write(
            qkv,
            numbers,
            numbers,
            model.rotary,
            *runner.cache[i % shape.layers],
            one.q_norm,
            one.k_norm,
            model.heads,
            model.kv,
            shape.size,
        ),
    }
    if not shape.experts:
        wanted["swiglu"] = lambda i: kernels.swiglu(both)
    if rows <= runner.max_sequences:
        logits = random(rows, model.vocab)
        wanted["argmax"] = lambda i: torch.argmax(logits, 1)
    wanted["embedding"] = lambda i: F.embedding(numbers, model.embedding)
    for role, call in wanted.items():
        if role == "rotary-write" and rows > runner.blocks * PAGE:
            continue
        session.sample(
            f"kernels/{shape.name}/{role}-m{rows}",
            "kernels",
            model=shape.name,
            kind=role,
            rows=rows,
            width=shape.hidden,
            **graph_us(call, burst_us=1000.0),
        )


def kernel_part(session, runner):
    name = runner.shape.name
    decode, chunk = attention_cases(session.quick)
    for batch, context in decode:
        session.case(
            f"kernels/{name}/decode-b{batch}-x{context}",
            lambda: decode_case(session, runner, batch, context),
        )
    for rows, history in chunk:
        session.case(
            f"kernels/{name}/chunk-q{rows}-x{history}", lambda: chunk_case(session, runner, rows, history)
        )
    for rows in (
        (1, 64, 640)
        if session.quick
        else (1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 2304)
    ):
        session.case(f"kernels/{name}/products-m{rows}", lambda: products(session, runner, rows))
        if rows in (1, 16, 64, 256, 640, 1024, 2048):
            session.case(f"kernels/{name}/rows-m{rows}", lambda: row_kernels(session, runner, rows))
