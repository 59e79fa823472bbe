# SPDX-License-Identifier: Apache-2.0
# Asks what PyTorch itself costs: dispatch, fusion, memory-bound kernels, experts, allocator.
"""Software questions (kind "software": variant, value, unit) and the kernels that a plain-PyTorch
training step runs between its products. framework_steps.py holds the questions about whole layers.
"""
import tempfile
import warnings

import torch
import torch.nn.functional as F

import framework_power
import framework_steps
from bench import Bench
from llama_layer import rms_norm, rotary_table, rotate, swiglu

warnings.filterwarnings("ignore")
MIB = 1 << 20


def time_work(bench, kind, library, variant, shape, read, written, call, sets=1, **options):
    def work():
        timing = bench.burst(call, sets, **options)
        bench.sample(kind, library, variant, timing, shape=shape, bytes_read=float(read),
                     bytes_written=float(written), vector_flop=0.0)
    bench.attempt(f"{kind} {library} {variant} {shape}", work)


def views(bench, count, *shape, grad=False):
    """`count` tensors one after another in the pool, so that a rotation over them is cold."""
    size = torch.Size(shape).numel()
    return [bench.random(*shape, offset=i * size).detach().requires_grad_(grad)
            for i in range(count)]


def with_backward(bench, kind, library, shape, traffic, call, inputs, gradients):
    """Times call(i) as training runs it and its backward alone; traffic: bytes read and written
    forward, then backward."""
    n = len(inputs)
    time_work(bench, kind, library, "forward", shape, *traffic[:2],
              lambda i: call(*inputs[i % n]), n)
    if not bench.has_time():
        return

    def outputs():
        return [call(*one) for one in inputs]
    results = bench.attempt(f"{kind} {library} {shape} outputs", outputs)
    if results is None:
        return
    wanted = [[x for x in one if x.requires_grad] for one in inputs]
    time_work(bench, kind, library, "backward", shape, *traffic[2:],
              lambda i: torch.autograd.grad(results[i % n], wanted[i % n], gradients[i % n],
                                            retain_graph=True), n)


def norms_and_activations(bench):
    compiled = {"norm": torch.compile(rms_norm, dynamic=False),
                "swiglu": torch.compile(swiglu, dynamic=False)}
    sizes = [(4096, 4096)] if bench.quick else [(4096, 4096), (32768, 4096), (1024, 4096),
                                                (16384, 2048)]
    for library in ("inductor", "eager"):
        for tokens, hidden in sizes if library == "inductor" else sizes[:2]:
            n = bench.sets(4 * tokens * hidden, 8)
            e = float(tokens * hidden)
            rows = views(bench, n, tokens, hidden, grad=True)
            grads = views(bench, n, tokens, hidden)
            scale = torch.ones(hidden, device=bench.device, dtype=torch.bfloat16,
                               requires_grad=True)
            norm = compiled["norm"] if library == "inductor" else rms_norm
            with_backward(bench, "norm", library, f"{tokens}x{hidden}",
                          (2 * e, 2 * e, 4 * e, 2 * e), norm,
                          [(x, scale) for x in rows], grads)
        widths = [(4096, 14336), (16384, 5504), (1024, 14336)]
        for tokens, width in widths[:1 if bench.quick else 3]:
            n = bench.sets(6 * tokens * width, 4)
            e = float(tokens * width)
            both = views(bench, n, tokens, 2 * width, grad=True)
            grads = views(bench, n, tokens, width)
            gate = compiled["swiglu"] if library == "inductor" else swiglu
            with_backward(bench, "elementwise", library, f"swiglu {tokens}x{width}",
                          (4 * e, 2 * e, 6 * e, 4 * e), gate, [(x,) for x in both], grads)


def rotary(bench):
    turn = torch.compile(rotate, dynamic=False)
    for library, call in (("inductor", turn), ("eager", rotate)):
        for heads, tokens in [(32, 4096)] if bench.quick else [(32, 4096), (32, 16384), (8, 4096)]:
            e = float(heads * tokens * 128)
            cos, sin = rotary_table(tokens, 128, bench.device)
            n = bench.sets(4 * e, 8)
            rows = [x.transpose(1, 2).detach().requires_grad_()
                    for x in views(bench, n, 1, tokens, heads, 128)]
            grads = [x.transpose(1, 2) for x in views(bench, n, 1, tokens, heads, 128)]
            with_backward(bench, "rotary", library, f"{tokens}x{heads}x128",
                          (2 * e, 2 * e, 2 * e, 2 * e), call, [(x, cos, sin) for x in rows], grads)


def plain_kernels(bench):
    """Eager kernels of one pass: copy, add, accumulate, transpose, cast."""
    sizes = [(4096, 4096)] if bench.quick else [(4096, 4096), (32768, 4096), (1024, 4096),
                                                (131072, 8192)]
    for rows, width in sizes:
        e = float(rows * width)
        n = bench.sets(4 * e, 8)
        xs, shape = views(bench, n, rows, width), f"{rows}x{width}"
        targets = [torch.empty_like(x) for x in xs]
        ys = [x.roll(1, 0) if e < 1e9 else x for x in xs]
        with torch.no_grad():
            for kind, variant, read, written, call in [
                    ("copy", "copy", 2, 2, lambda i: targets[i % n].copy_(xs[i % n])),
                    ("elementwise", "add", 4, 2, lambda i: xs[i % n] + ys[i % n]),
                    ("elementwise", "accumulate", 4, 2, lambda i: targets[i % n].add_(xs[i % n])),
                    ("elementwise", "transpose", 2, 2, lambda i: xs[i % n].t().contiguous()),
                    ("elementwise", "to-fp32", 2, 4, lambda i: xs[i % n].float())]:
                if variant == "to-fp32" and e > 5e8:
                    continue
                time_work(bench, kind, "eager", variant, shape, read * e, written * e, call, n)
        del targets, ys


def loss_and_embedding(bench):
    for tokens, vocab in [(4096, 32000)] if bench.quick else [(4096, 128256), (4096, 32000),
                                                              (16384, 32000), (1024, 128256)]:
        e = float(tokens * vocab)
        logits = views(bench, 1, tokens, vocab, grad=True)
        target = torch.randint(0, vocab, (tokens,), device=bench.device)
        with_backward(bench, "cross-entropy", "eager", f"{tokens}x{vocab}",
                      (2 * e, 0, 2 * e, 2 * e),
                      lambda x: F.cross_entropy(x.float(), target), [(logits[0],)],
                      [torch.ones((), device=bench.device)])
    tables = [(4096, 128256, 4096), (16384, 32000, 2048)]
    for tokens, vocab, hidden in tables[:1 if bench.quick else 2]:
        table = bench.random(vocab, hidden).detach().requires_grad_()
        words = torch.randint(0, vocab, (tokens,), device=bench.device)
        rows = 2.0 * tokens * hidden
        with_backward(bench, "embedding", "eager", f"{tokens}x{hidden} of {vocab}",
                      (rows, rows, rows, rows + 2.0 * vocab * hidden),
                      lambda w: F.embedding(words, w), [(table,)],
                      [torch.randn(tokens, hidden, device=bench.device, dtype=torch.bfloat16)])


def optimizers(bench):
    for count in [1 << 26] if bench.quick else [1 << 24, 1 << 27, 1 << 30]:
        p = torch.zeros(count, device=bench.device, dtype=torch.bfloat16, requires_grad=True)
        p.grad = torch.randn_like(p)
        for library, options in [("fused", {"fused": True}), ("eager", {"foreach": True})]:
            step = torch.optim.AdamW([p], lr=1e-5, **options).step
            time_work(bench, "optimizer", library, "adamw-bf16", str(count), 8.0 * count,
                      6.0 * count, lambda i: step(), in_graph=False)
        del p
        torch.cuda.empty_cache()


def experts(bench):
    """Products of expert layers as PyTorch has them: batched, and grouped with uneven counts."""
    cases = [(32, 512, 7168, 4096)] if bench.quick else [
        (32, 512, 7168, 4096), (32, 512, 4096, 3584), (8, 2048, 28672, 4096),
        (8, 2048, 4096, 14336),
        (64, 768, 2816, 2048), (64, 768, 2048, 1408), (8, 512, 7168, 4096), (16, 2048, 4096, 7168),
        (128, 256, 1536, 2048), (64, 64, 4096, 2048), (8, 4096, 4096, 4096)]
    for groups, m, n, k in cases:
        x, y = bench.random(groups, m, k), bench.random(groups, m, n, offset=1 << 26)
        w = bench.random(groups, k, n, offset=1 << 27)
        rows, ends = groups * m, torch.arange(1, groups + 1, device=bench.device)
        ends = (ends * m).to(torch.int32)
        xr, yr = x.view(rows, k), y.view(rows, n)
        calls = {
            "forward": ((m, n, k), lambda i: torch.bmm(x, w),
                        lambda i: torch._grouped_mm(xr, w, offs=ends)),
            "input-gradient": ((m, k, n), lambda i: torch.bmm(y, w.transpose(1, 2)),
                               lambda i: torch._grouped_mm(yr, w.transpose(1, 2), offs=ends)),
            "weight-gradient": ((n, k, m), lambda i: torch.bmm(y.transpose(1, 2), x),
                                lambda i: torch._grouped_mm(yr.t(), xr, offs=ends))}
        for role, (size, batched, grouped) in calls.items():
            for kind, library, call in [("gemm", "cublas", batched),
                                        ("grouped-gemm", "grouped-gemm", grouped)]:
                if bench.quick and role == "weight-gradient":
                    continue

                def work():
                    with torch.no_grad():
                        timing = bench.burst(call)
                    bench.sample(kind, library, "pytorch", timing, input="bf16", output="bf16",
                                 role=role, accumulate_fp32=False, m=size[0], n=size[1],
                                 k=size[2], groups=groups)
                bench.attempt(f"{kind} {role} {groups}x{m}x{n}x{k}", work)


def dispatch(bench):
    """Host time of one small framework operation, with and without autograd."""
    count = 300
    x = torch.ones(32, 32, device=bench.device, dtype=torch.bfloat16)
    leaf = torch.ones_like(x).requires_grad_()
    q = torch.ones(1, 4, 32, 64, device=bench.device, dtype=torch.bfloat16)

    def repeat(call):
        def work():
            for _ in range(count):
                call()
        return work

    def chain():
        y = leaf
        for _ in range(count):
            y = y + x
        return y

    def products():
        y = leaf
        for _ in range(count):
            y = F.linear(y, x)
        return y

    with torch.no_grad():
        for name, call in [("add", lambda: x + x), ("mm", lambda: x @ x),
                           ("linear", lambda: F.linear(x, x)), ("copy", lambda: x.clone()),
                           ("norm", lambda: F.rms_norm(x, (32,), x[0], 1e-5)),
                           ("attention",
                            lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True))]:
            bench.attempt(f"dispatch {name}", lambda: bench.software(
                f"dispatch-no-grad-{name}", **bench.host_us(repeat(call), count)))
    bench.attempt("dispatch autograd", lambda: bench.software(
        "dispatch-autograd-add", **bench.host_us(chain, count)))
    for name, make in [("add", chain), ("linear", products)]:
        def backward():
            outputs = [make() for _ in range(8)]
            torch.cuda.synchronize()
            bench.software(f"dispatch-backward-{name}", **bench.host_us(
                lambda: torch.autograd.grad(outputs.pop(), leaf, x), count, repeats=6))
        bench.attempt(f"dispatch backward {name}", backward)


def allocator(bench):
    """Blocks and segments of the caching allocator: bytes taken per request."""
    torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats
    for request in [1, 513, 100_000, MIB - 1, MIB + 1, 5 * MIB + 1, 10 * MIB + 1, 33 * MIB + 1]:
        torch.cuda.empty_cache()
        a0, r0 = stats()["allocated_bytes.all.current"], stats()["reserved_bytes.all.current"]
        x = torch.empty(request, dtype=torch.uint8, device=bench.device)
        a1, r1 = stats()["allocated_bytes.all.current"], stats()["reserved_bytes.all.current"]
        bench.software("allocator-block", a1 - a0, "B", requested=request)
        bench.software("allocator-segment", r1 - r0, "B", requested=request)
        del x
    a = torch.ones(256, 256, device=bench.device, dtype=torch.bfloat16)
    side = torch.cuda.Stream()  # no product ran there yet: it gets a workspace of its own
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        b = torch.empty_like(a)
        before = torch.cuda.memory_allocated()
        torch.mm(a, a, out=b)
        bench.software("cublas-workspace", torch.cuda.memory_allocated() - before, "B")
    torch.cuda.synchronize()


def context(bench, variant):
    """What the process holds beyond the allocator: context, modules, library workspaces."""
    torch.cuda.synchronize()
    used = bench.nvml.used_bytes()
    if used is None or bench.base_bytes is None:
        bench.note("no NVML: context not measured")
        return
    bench.software(variant, used - bench.base_bytes - torch.cuda.memory_reserved(), "B")


def collectives(bench):
    """Host time of collective calls, in a group of one rank: the queueing is the same."""
    import torch.distributed as dist
    context(bench, "context-without-nccl")
    folder = tempfile.mkdtemp()
    dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1,
                            device_id=bench.device)
    x = torch.ones(4096, device=bench.device, dtype=torch.bfloat16)
    y = torch.empty_like(x)

    context(bench, "context-with-nccl")

    def many(call):
        def work():
            for _ in range(100):
                call()
        return work
    for name, call in [("all-reduce", lambda: dist.all_reduce(x)),
                       ("all-to-all", lambda: dist.all_to_all_single(y, x)),
                       ("all-gather", lambda: dist.all_gather_into_tensor(y, x))]:
        bench.attempt(name, lambda: bench.software(f"dispatch-{name}",
                                                   **bench.host_us(many(call), 100)))
    bench.attempt("barrier", lambda: bench.software(
        "barrier", **bench.host_us(lambda: (dist.barrier(), torch.cuda.synchronize()), 1)))
    framework_steps.wrapped(bench)


def without_donation(part):
    """A compiled backward that reuses its saved buffers can run only once: not for these."""
    def run(bench):
        import torch._functorch.config as config
        config.donated_buffer = False
        part(bench)
    run.__name__ = part.__name__
    return run


def main():
    bench = Bench("framework", 160)
    bench.conditions()
    import torch._dynamo
    torch._dynamo.config.cache_size_limit = 256
    x = torch.ones(64, 64, device=bench.device, dtype=torch.bfloat16)
    x @ x
    bench.attempt("context", lambda: context(bench, "context-bare"))
    bench.attempt("allocator", lambda: allocator(bench))
    bench.attempt("dispatch", lambda: dispatch(bench))
    compiled = [without_donation(norms_and_activations), without_donation(rotary)]
    parts = [framework_steps.host_of_layers, collectives, framework_steps.layers,
             loss_and_embedding, optimizers, plain_kernels, framework_steps.expert_layer,
             framework_steps.memory, experts, *compiled, without_donation(framework_power.power)]
    if bench.quick:
        parts = [loss_and_embedding, optimizers, plain_kernels, experts]  # nothing to compile
    for part in parts:
        bench.attempt(part.__name__, lambda: part(bench))
        bench.free()
        bench.note(f"{part.__name__} done")
    bench.attempt("context", lambda: context(bench, "context"))
    bench.close()


if __name__ == "__main__":
    main()
