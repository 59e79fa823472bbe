# SPDX-License-Identifier: Apache-2.0
# Knows how whole layers are taken apart: host time, kernels by class, saved bytes, peaks.
"""Parts of framework.py that run the layer of llama_layer.py."""
import json
import os
import tempfile
import time

import torch
import torch.nn.functional as F

from llama_layer import Layer, Model, loss_of, rms_norm, rotary_table, weight

TINY = {"hidden": 256, "heads": 4, "kv_heads": 2, "head": 64, "ffn": 512, "vocab": 512}
TINY_EXPERTS = {**TINY, "experts": 8, "topk": 2}


def kernel_class(name):
    low = name.lower()
    if low.startswith("triton"):
        return "fused"
    if any(word in low for word in ("flash", "fmha", "sdpa", "attention", "cudnn")):
        return "attention"
    if any(word in low for word in ("nvjet", "gemm", "cutlass", "cublas", "xmma", "splitk")):
        return "gemm"
    return "eager"


def trace(bench, work):
    """Device activities of work(): (name, microseconds) in order of start."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    profile.export_chrome_trace(path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    os.unlink(path)
    found = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    found.sort(key=lambda e: e["ts"])
    if not found:
        raise RuntimeError("the profiler saw no kernels")
    return [(e["name"], float(e["dur"])) for e in found]


def sums_of(kernels):
    """Number and microseconds of kernels by class, and by name."""
    classes, names = {}, {}
    for name, us in kernels:
        for table, key in ((classes, kernel_class(name)), (names, name[:100])):
            total = table.setdefault(key, [0, 0.0])
            total[0] += 1
            total[1] += us
    return classes, names


def report_kernels(bench, phase, kernels, repeats, keys):
    """Time and number of kernels of one layer by class; and each kernel, for people to read."""
    classes, names = sums_of(kernels)
    for label in ("gemm", "attention", "fused", "eager"):
        count, us = classes.get(label, (0, 0.0))
        bench.software(f"{phase}-{label}-time", us / repeats, "us", kernels=count / repeats, **keys)
    bench.software(f"{phase}-kernels", len(kernels) / repeats, "kernels", **keys)
    for name, (count, us) in sorted(names.items(), key=lambda item: -item[1][1])[:24]:
        bench.software(f"{phase}-kernel", us / repeats, "us", kernels=count / repeats, name=name,
                       kernel_class=kernel_class(name), **keys)


def take_apart(bench, phase, make, sizes, tokens, keys, repeats=4):
    """Profiles make() forward and backward `repeats` times, gradients fresh each time."""
    layer, x, arguments = make()
    gradient = torch.randn_like(x)

    def forward():
        return layer(x, *arguments)

    def clear():
        x.grad = None
        for p in layer.parameters():
            p.grad = None
    for _ in range(2):
        forward().backward(gradient)
        clear()
    torch.cuda.synchronize()
    outputs = []
    kernels = trace(bench, lambda: outputs.extend(forward() for _ in range(repeats)))
    report_kernels(bench, f"{phase}-forward", kernels, repeats, keys)

    def backward():
        while outputs:
            clear()
            outputs.pop().backward(gradient)
    kernels = trace(bench, backward)
    report_kernels(bench, f"{phase}-backward", kernels, repeats, keys)
    clear()
    timing = bench.burst(lambda i: forward(), repeats=3, burst_ms=20)
    bench.software(f"{phase}-forward-graph", timing["time_us"], "us", low=timing["low_us"],
                   high=timing["high_us"], **keys)
    wanted = [x, *layer.parameters()]
    timing = bench.burst(lambda i: torch.autograd.grad(forward(), wanted, gradient), repeats=3,
                         burst_ms=20)
    bench.software(f"{phase}-both-graph", timing["time_us"], "us", low=timing["low_us"],
                   high=timing["high_us"], **keys)


def layer_case(bench, phase, sizes, batch, length):
    keys = dict(tokens=batch * length, length=length, **sizes)

    def make():
        layer = Layer(sizes, bench.device)
        x = torch.randn(batch, length, sizes["hidden"], device=bench.device, dtype=torch.bfloat16)
        return layer, x.requires_grad_(), rotary_table(length, sizes["head"], bench.device)
    take_apart(bench, phase, make, sizes, batch * length, keys)


def layers(bench):
    """Kernels of a whole layer, forward and backward, by class."""
    cases = [
        ({"hidden": 4096, "heads": 32, "kv_heads": 8, "head": 128, "ffn": 14336}, 1, 4096),
        ({"hidden": 2048, "heads": 16, "kv_heads": 16, "head": 128, "ffn": 5504}, 8, 2048),
        ({"hidden": 5120, "heads": 40, "kv_heads": 40, "head": 128, "ffn": 13824}, 1, 2048)]
    for i, (sizes, batch, length) in enumerate(cases):
        if i > 0 and (bench.quick or not bench.has_time(0.5)):
            continue
        bench.attempt(f"layer {sizes}", lambda: layer_case(bench, "layer", sizes, batch, length))
    for tokens, hidden, vocab in [(4096, 4096, 128256), (16384, 2048, 32000)][:1 if bench.quick
                                                                              else 2]:
        keys = dict(tokens=tokens, hidden=hidden, vocab=vocab)

        def make():
            class Head(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.scale = torch.nn.Parameter(
                        torch.ones(hidden, device=bench.device, dtype=torch.bfloat16))
                    self.head = weight(bench.device, vocab, hidden)
                    self.target = torch.randint(0, vocab, (tokens,), device=bench.device)

                def forward(self, x):
                    return loss_of(F.linear(rms_norm(x, self.scale), self.head), self.target)
            x = torch.randn(tokens, hidden, device=bench.device, dtype=torch.bfloat16)
            return Head(), x.requires_grad_(), ()

        def run():
            head, x, _ = make()
            for _ in range(2):
                head(x).backward()
            outputs = []
            kernels = trace(bench, lambda: outputs.append(head(x)))
            report_kernels(bench, "head-forward", kernels, 1, keys)
            for p in (x, *head.parameters()):
                p.grad = None
            kernels = trace(bench, lambda: outputs.pop().backward())
            report_kernels(bench, "head-backward", kernels, 1, keys)
        bench.attempt(f"head {keys}", run)


def expert_layer(bench):
    cases = [({"hidden": 4096, "heads": 32, "kv_heads": 8, "head": 128, "ffn": 3584, "experts": 32,
               "topk": 4}, 1, 4096),
             ({"hidden": 2048, "heads": 16, "kv_heads": 16, "head": 128, "ffn": 1408, "experts": 64,
               "topk": 6}, 2, 4096)]
    for sizes, batch, length in cases[:1 if bench.quick else 2]:
        bench.attempt(f"expert layer {sizes}",
                      lambda: layer_case(bench, "expert-layer", sizes, batch, length))


def median(values):
    return sorted(values)[len(values) // 2]


PHASES = ("forward", "backward", "optimizer", "zero")


def timed_step(model, optimizer, tokens):
    """Host microseconds of each phase of a step."""
    marks = [time.perf_counter()]
    loss = loss_of(model(tokens), tokens)
    marks.append(time.perf_counter())
    loss.backward()
    marks.append(time.perf_counter())
    optimizer.step()
    marks.append(time.perf_counter())
    optimizer.zero_grad(set_to_none=True)
    marks.append(time.perf_counter())
    return [1e6 * (b - a) for a, b in zip(marks, marks[1:])]


def host_times(bench, model, optimizer, repeats=9):
    """Host microseconds of each phase of steps whose device work is tiny."""
    tokens = torch.randint(0, TINY["vocab"], (1, 64), device=bench.device)
    phases = {phase: [] for phase in PHASES}
    for i in range(repeats + 3):
        torch.cuda.synchronize()
        step = timed_step(model, optimizer, tokens)
        if i >= 3:
            for phase, us in zip(PHASES, step):
                phases[phase].append(us)
    return phases


def slopes(bench, name, build, few=2, many=8):
    """Host time per layer and of the rest, from models of two depths; low and high from extremes
    of the repeats."""
    measured = {}
    for count in (few, many):
        model = build(count)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
        measured[count] = host_times(bench, model, optimizer)
        del model, optimizer
    for phase in ("forward", "backward"):
        short, long = measured[few][phase], measured[many][phase]
        layer = (median(long) - median(short)) / (many - few)
        bench.software(f"host-{name}-{phase}", layer, "us",
                       low=(min(long) - median(short)) / (many - few),
                       high=(max(long) - median(short)) / (many - few))
        bench.software(f"host-{name}-head-{phase}", median(short) - few * layer, "us",
                       low=min(short) - few * layer, high=max(short) - few * layer)
    for phase in ("optimizer", "zero"):
        values = measured[many][phase]
        bench.software(f"host-{name}-{phase}", median(values), "us", low=min(values),
                       high=max(values), layers=many)


def host_of_layers(bench):
    """Host time of a layer: plain, recomputed, with experts."""
    for name, sizes, recompute in [("layer", TINY, False), ("recomputed-layer", TINY, True),
                                   ("expert-layer", TINY_EXPERTS, False)]:
        bench.attempt(f"host {name}", lambda: slopes(
            bench, name, lambda count: Model(sizes, count, 64, bench.device, recompute)))

    def one_graph():
        layer = Layer(TINY, bench.device)
        x = torch.randn(1, 64, TINY["hidden"], device=bench.device, dtype=torch.bfloat16)
        cos, sin = rotary_table(64, TINY["head"], bench.device)
        x.requires_grad_()
        for _ in range(3):
            layer(x, cos, sin)
        graph = bench.capture(lambda i: layer(x, cos, sin), 1)
        if graph is not None:
            bench.software("host-layer-graph-replay", **bench.host_us(graph.replay, 1))

            def replays():
                for _ in range(20):
                    graph.replay()
            bench.software("layer-graph-replay", bench.events_us(replays) / 20, "us")
    bench.attempt("graph of a layer", one_graph)


def wrapped(bench):
    """Host time of a layer under DDP and FSDP2, in a group of one rank."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    def ddp(count):
        return DistributedDataParallel(Model(TINY, count, 64, bench.device),
                                       gradient_as_bucket_view=True)

    def fsdp(count):
        mesh = init_device_mesh("cuda", (1,))
        model = Model(TINY, count, 64, bench.device)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model
    bench.attempt("host ddp", lambda: slopes(bench, "ddp-layer", ddp))
    bench.attempt("host fsdp", lambda: slopes(bench, "fsdp-layer", fsdp))


def memory_of(bench, sizes, tokens, vocab):
    """Bytes that a layer and the head keep for backward, and what backward takes on top."""
    allocated, keys = torch.cuda.memory_allocated, dict(tokens=tokens, **sizes)
    stack = [Layer(sizes, bench.device) for _ in range(2)]
    tables = rotary_table(tokens, sizes["head"], bench.device)
    head = weight(bench.device, vocab, sizes["hidden"])
    target = torch.randint(0, vocab, (tokens,), device=bench.device)
    parameters = [p for layer in stack for p in layer.parameters()] + [head]
    x = torch.randn(1, tokens, sizes["hidden"], device=bench.device, dtype=torch.bfloat16)
    x.requires_grad_()
    for run in range(2):  # the first compiles
        for p in (x, *parameters):
            p.grad = None
        marks, y = [allocated()], x
        for layer in stack:
            y = layer(y, *tables)
            marks.append(allocated())
        torch.cuda.reset_peak_memory_stats()
        loss = loss_of(F.linear(y, head), target)
        marks.append(allocated())
        del y
        head_peak = torch.cuda.max_memory_allocated()
        loss.backward()
        peak, after = torch.cuda.max_memory_allocated(), allocated()
        del loss
    own = sum(p.numel() for p in stack[0].parameters()) * 2
    bench.software("layer-parameter-bytes", own, "B", **keys)
    bench.software("layer-saved-bytes", marks[2] - marks[1], "B", **keys)
    bench.software("head-saved-bytes", marks[3] - marks[2], "B", vocab=vocab, **keys)
    bench.software("head-forward-peak-bytes", head_peak - marks[2], "B", vocab=vocab, **keys)
    bench.software("step-peak-bytes", peak - marks[0], "B", vocab=vocab, **keys)
    bench.software("step-gradient-bytes", after - marks[0], "B", vocab=vocab, **keys)


def memory(bench):
    bench.free()
    sizes = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head": 128, "ffn": 14336}
    bench.attempt("memory of a layer", lambda: memory_of(bench, sizes, 4096, 32000))
    bench.free()

    def loop():
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()  # of graphs
        model = Model({**sizes, "vocab": 32000}, 2, 4096, bench.device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
        tokens = torch.randint(0, 32000, (1, 4096), device=bench.device)
        torch.cuda.reset_peak_memory_stats()
        for _ in range(3):
            loss_of(model(tokens), tokens).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        allocated = torch.cuda.max_memory_allocated() - before[0]
        reserved = torch.cuda.max_memory_reserved() - before[1]
        bench.software("allocator-peak-allocated", allocated, "B")
        bench.software("allocator-rounding", reserved / allocated, "ratio")
    bench.attempt("allocator over a training loop", loop)
