# SPDX-License-Identifier: Apache-2.0
# Asks what products cost in pieces and beside the gathers and scatters of tensor parallelism.
"""Run: torchrun --standalone --nproc-per-node 2 tensor_pieces.py [--part NAME]... [--quick], with
NCCL_NVLS_ENABLE=0 and TORCH_SYMM_MEM_DISABLE_MULTICAST=1. Shapes are those of one device of
`tensor_parallel`; all ways of a case are timed in turns, so that they see the same clocks.

tensor-pieces: a product of m tokens whole and in `pieces` of m / pieces rows, one after another
(`one-stream`) or on two streams in turn (`two-streams`); every GPU does half of the cases.
tensor-ranks: two GPUs that exchange what they multiply. Before a column-parallel product its rows
are gathered, after a row-parallel one they are summed and scattered. `product`, `pieces`, `nccl`,
`copies` and `sum` are the parts alone; `nccl-then-product` and `product-then-nccl` the two in a
row; `torch-fused` is PyTorch's operation on symmetric memory; `ring` multiplies pieces on two
streams while copy engines bring or take the others; `pipeline` multiplies four splits while NCCL on
16 CTAs scatters the split before. A ring of more than two pieces does what a device of a group of
so many does: pieces - 1 copies, all from or to the one peer.
tensor-bulk: a whole product (input gradient beside an all-gather, weight gradient beside a
reduce-scatter) with an unrelated collective of NCCL on so many `ctas` (0: its choice) or copies of
copy engines. `beside`: the other began 10 us before; `together`: both begin at once; `margin`: the
product is told to leave 16 SMs. product_us and collective_us are from its own start to its end. The
collective moves over the link what a device of a group of `tensor_parallel` receives.
"""

import os
import random
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl

from bench import relative_error
from framework_steps import trace
from training_bench import TrainingBench

ABOUT = """Products of one device of a tensor-parallel group whole, in pieces, and with their
gathers and reduce-scatters in several ways, on two GPUs with NVLink and without its multicast.
time_us is the median of `repeats`, each of `calls` calls in a row, of the slower rank where ranks
communicate; p10_us and p90_us, low_us and high_us are quantiles and extremes. Operands are random.
Bursts of some 5 ms follow pauses, at the clocks the GPU chooses; sustained samples run for 0.3 s
without a pause, under the power limit. Clocks and power are means of readings right after the
repeats; power follows slowly. """

FP8, GAIN = torch.float8_e4m3fn, 72.0
TOKENS = (1024, 2048, 4096, 8192, 16384)
# hidden, rows of all heads' queries, keys and values, rows of the first product of the MLP, ffn
MODELS = {"gpt-3-175b": (12288, 3 * 12288, 4 * 12288, 4 * 12288),
          "llama-3.1-405b": (16384, 16384 + 2048, 2 * 53248, 53248),
          "llama-3.1-70b": (8192, 8192 + 2048, 2 * 28672, 28672)}
GROUPS = [("gpt-3-175b", 4), ("gpt-3-175b", 8), ("llama-3.1-405b", 4), ("llama-3.1-405b", 8),
          ("llama-3.1-70b", 4)]


def shape_of(model, tp, product):
    """n and k of a device's product."""
    hidden, qkv, fc1, ffn = MODELS[model]
    return {"qkv": (qkv // tp, hidden), "proj": (hidden, hidden // tp),
            "fc1": (fc1 // tp, hidden), "fc2": (hidden, ffn // tp)}[product]


def cases_of(products, tokens, quick):
    cases = [(*g, p, m) for g in GROUPS for p in products for m in tokens]
    random.Random(5).shuffle(cases)
    return [c for c in cases if c[3] < 4096][:4] if quick else cases


def write(bench, kind, library, variant, found, mode="burst", **keys):
    times, spread = sorted(found["times"]), {}
    for name, share in (("time", 0.5), ("low", 0), ("high", 1), ("p10", 0.1), ("p90", 0.9)):
        spread[name + "_us"] = times[round(share * (len(times) - 1))]
    names = dict(part=bench.program, kind=kind, library=library, variant=variant, mode=mode)
    bench.out.line("sample", **names, **keys, **spread, repeats=len(times), calls=found["calls"],
                   clock_after_mhz=found["clock"], power_w=found["power"],
                   temperature_c=bench.nvml.temperature())


def timed(call, calls, host, align):
    """Microseconds of one of `calls` calls, which the host queues while the device sleeps."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(int(min(4e7, 2e6 + 3e9 * host * calls)))
    if align is not None:
        align()
    begin.record()
    marks = [x for x in (call(i) for i in range(calls)) if isinstance(x, list)]
    end.record()
    end.synchronize()
    beside = [[1e3 * a.elapsed_time(b) for a, b in mark] for mark in marks]
    return [1e3 * begin.elapsed_time(end) / calls, *(sum(x) / calls for x in zip(*beside))]


def in_turns(bench, ways, us, repeats=9, burst_us=5e3, align=None):
    """Times all ways in turns: for each its samples of [total, what its marks say...]."""
    repeats = 3 if bench.quick else repeats
    calls = int(max(1, min(400 if burst_us > 1e5 else 20, burst_us / us)))
    found = {name: {"times": [], "clock": 0.0, "power": 0.0, "calls": calls} for name in ways}
    for name, call in ways.items():
        for i in range(2):  # the first warms up
            begin = time.perf_counter()
            call(i)
            found[name]["host"] = time.perf_counter() - begin
            torch.cuda.synchronize()
    for _ in range(repeats):
        for name, call in ways.items():
            time.sleep(0.004)
            found[name]["times"].append(timed(call, calls, found[name]["host"], align))
            found[name]["clock"] += (bench.nvml.clock() or 0.0) / repeats
            found[name]["power"] += (bench.nvml.power() or 0.0) / repeats
    for one in found.values():
        if align is not None:  # the slower rank of every repeat
            slowest = torch.tensor(one["times"], device=bench.device)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            one["times"] = slowest.tolist()
        one["times"], *marks = zip(*one["times"])
        one["marks"] = [sorted(x)[repeats // 2] for x in marks]
    return found


def on_streams(streams, works, after=None):
    """Queues works on the streams in turn, each after its event; the current stream joins."""
    main = torch.cuda.current_stream()
    start = main.record_event()
    for j, work in enumerate(works):
        stream = streams[j % len(streams)]
        stream.wait_event(after[j] if after and after[j] is not None else start)
        with torch.cuda.stream(stream):
            work()
    for stream in streams[: len(works)]:
        main.wait_stream(stream)


def multiply(x, w, out, scale=None):
    if scale is None:
        return torch.mm(x, w.t(), out=out)
    return torch._scaled_mm(x, w.t(), scale, scale, out_dtype=torch.bfloat16,
                            use_fast_accum=True, out=out)


def cut(x, pieces):
    return list(x.view(pieces, x.shape[0] // pieces, *x.shape[1:]).unbind(0))


def piece_way(sets, pieces, streams, scale):
    works = []
    for x, w, out in sets:
        parts = list(zip(cut(x, pieces), cut(out, pieces)))
        works.append([lambda a=a, w=w, o=o: multiply(a, w, o, scale) for a, o in parts])
    if streams is None:
        return lambda i: [work() for work in works[i % len(works)]] and None
    return lambda i: on_streams(streams, works[i % len(works)])


def check(found, exact, what):
    error = relative_error(found, exact)
    assert error < 0.01, f"{what}: relative error {error}"


def pieces_case(bench, streams, model, tp, product, m):
    n, k = shape_of(model, tp, product)
    count = bench.sets(2 * (m * k + n * k), most=3)
    size = m * k + n * k
    pairs = [(bench.random(m, k, offset=i * size), bench.random(n, k, offset=i * size + m * k))
             for i in range(count)]
    outs = [torch.empty(m, n, device=bench.device, dtype=torch.bfloat16) for _ in range(count)]
    us = 2e6 * m * n * k / 7e14
    for input_, scale in (("bf16", None), ("fp8", torch.tensor(1 / GAIN, device=bench.device))):
        if scale is not None:
            pairs = [[(y * GAIN).clamp(-448, 448).to(FP8) for y in pair] for pair in pairs]
            us /= 2
        sets = [(x, w, out) for (x, w), out in zip(pairs, outs)]
        ways = {(1, "whole"): piece_way(sets, 1, None, scale)}
        for pieces in (2, 4, 8):
            ways[pieces, "one-stream"] = piece_way(sets, pieces, None, scale)
            ways[pieces, "two-streams"] = piece_way(sets, pieces, streams, scale)
        keys = dict(model=model, tensor_parallel=tp, product=product, input=input_, m=m, n=n, k=k,
                    gpu=bench.options.gpu)
        x, w, out = sets[0]
        if m == 1024:
            exact = x.float() @ w[:64].float().t() * (1 if scale is None else scale**2)
            for name, call in ways.items():
                out.zero_()
                call(0)
                check(out[:, :64], exact, name)
        modes = [("burst", 5e3, 9, list(ways))]
        if m == 8192 and input_ == "bf16":
            chosen = [(1, "whole"), (tp, "one-stream"), (tp, "two-streams")]
            modes.append(("sustained", 3e5, 3, chosen))
        for mode, burst_us, repeats, names in modes:
            found = in_turns(bench, {w: ways[w] for w in names}, us, repeats, burst_us)
            for (pieces, variant), one in found.items():
                write(bench, "gemm-pieces", "cublas", variant, one, mode, pieces=pieces, **keys)
        rows = [m // p for p in (1, 2, 4, 8)]  # names the kernel of each
        named = trace(bench, lambda: [multiply(x[:r], w, out[:r], scale) for r in rows])
        bench.out.line("kernels", part=bench.program, kind="gemm-pieces", **keys, rows=rows,
                       kernels=[[name[:90], round(us, 2)] for name, us in named])


def pieces(bench, pair):
    bench.random(1 << 30)
    cases = cases_of(("qkv", "proj", "fc1", "fc2"), TOKENS, bench.quick)
    for case in cases[dist.get_rank() :: dist.get_world_size()]:
        bench.case(f"pieces {case}", lambda: pieces_case(bench, pair.streams, *case))


@triton.jit
def sum_slots(slots, out, count, P: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for j in tl.static_range(P):
        total += tl.load(slots + j * count + at).to(tl.float32)
    tl.store(out + at, total.to(tl.bfloat16))


class Pair:
    """Two ranks: symmetric memory that both map, streams, and groups by NCCL's CTAs."""

    def __init__(self, bench):
        self.rank, self.peer = dist.get_rank(), 1 - dist.get_rank()
        self.name = dist.group.WORLD.group_name
        self.space = symm_mem.empty(1 << 28, dtype=torch.bfloat16, device=bench.device)
        self.handle = symm_mem.rendezvous(self.space, self.name)
        self.barrier = lambda: self.handle.barrier(channel=0)
        self.space.normal_()
        self.copier = torch.cuda.Stream(priority=-1)
        self.streams = [torch.cuda.Stream() for _ in range(2)]
        self.groups = {0: dist.group.WORLD}
        for ctas in (16, 4):
            options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
            options.config.min_ctas = options.config.max_ctas = ctas
            self.groups[ctas] = dist.new_group([0, 1], pg_options=options)

    def mine(self, *shape):
        return self.space[: torch.Size(shape).numel()].view(*shape)

    def theirs(self, *shape):
        return self.handle.get_buffer(self.peer, shape, torch.bfloat16)

    def send(self, work, after):
        """Work on the copying stream after an event; the event at its end."""
        self.copier.wait_event(after)
        with torch.cuda.stream(self.copier):
            work()
        return self.copier.record_event()

    def copies(self, targets, sources):
        """Copies on the copying stream; the event at the end of each."""
        start = torch.cuda.current_stream().record_event()
        return [self.send(lambda: a.copy_(b), start) for a, b in zip(targets, sources)]

    def chase(self, works, sends):
        """Works on two streams in turn, each followed by its send on the copying stream. A send is
        queued after the next work, so that no shared hardware queue holds that work back."""
        done = []

        def step(j):
            works[j]()
            done.append(torch.cuda.current_stream().record_event())
            if 0 < j <= len(sends):
                self.send(sends[j - 1], done[j - 1])

        on_streams(self.streams, [lambda j=j: step(j) for j in range(len(works))])
        if len(sends) == len(works):
            self.send(sends[-1], done[-1])
        self.joined()

    def joined(self):
        torch.cuda.current_stream().wait_stream(self.copier)


def gather_ways(pair, m, w, whole, out, sizes):
    k = whole.shape[1]
    mine, theirs, shard = pair.mine(m, k), pair.theirs(m, k), pair.mine(m // 2, k)
    gather = lambda i: dist.all_gather_into_tensor(whole, shard)
    product = lambda i: multiply(whole, w, out)
    fused = lambda i: torch.ops.symm_mem.fused_all_gather_matmul(shard, [w.t()], 0, pair.name)
    ways = {("product", 1): product, ("nccl", 1): gather, ("torch-fused", 2): fused,
            ("nccl-then-product", 1): lambda i: (gather(i), product(i))}
    for p in sizes:
        xs, outs = [cut(mine, p)[0], *cut(whole, p)[1:]], cut(out, p)
        targets, sources = cut(whole, p)[1:], cut(theirs, p)[1:]
        works = [lambda x=x, o=o: multiply(x, w, o) for x, o in zip(xs, outs)]

        def ring(i, targets=targets, sources=sources, works=works):
            pair.barrier()
            arrived = pair.copies(targets, sources)
            on_streams(pair.streams, works, [None, *arrived])
            pair.joined()

        ways["pieces", p] = lambda i, works=works: on_streams(pair.streams, works)
        ways["copies", p] = lambda i, ring=ring: ring(i, works=[])
        ways["ring", p] = ring
    return ways


def scatter_ways(pair, m, x, w, y, half, sizes):
    product = lambda i: multiply(x, w, y)
    scatter = lambda i: dist.reduce_scatter_tensor(half, y)
    fuse = torch.ops.symm_mem.fused_matmul_reduce_scatter
    fused = lambda i: fuse(x, w.t(), "sum", 0, pair.name)
    splits = list(zip(cut(x, 4), cut(y, 4), cut(half, 4)))
    works = [lambda a=a, b=b: multiply(a, w, b) for a, b, _ in splits]
    sends = [lambda b=b, c=c: dist.reduce_scatter_tensor(c, b, group=pair.groups[16])
             for _, b, c in splits]
    pipeline = lambda i: pair.chase(works, sends)
    ways = {("product", 1): product, ("nccl", 1): scatter, ("pipeline", 4): pipeline,
            ("product-then-nccl", 1): lambda i: (product(i), scatter(i)), ("torch-fused", 2): fused}
    for p in sizes:
        shape = (p, m // p, w.shape[0])
        slots, away = pair.mine(*shape), list(pair.theirs(*shape).unbind(0))
        ways.update(scatter_ring(pair, cut(x, p), w, cut(y, p), slots, away, half))
    return ways


def scatter_ring(pair, xs, w, ys, slots, away, half):
    """Pieces for others first, each copied into its slot there; the own one last; then the sum."""
    p, count = len(xs), slots[0].numel()
    outs = [*ys[:-1], slots[-1]]
    works = [lambda a=a, o=o: multiply(a, w, o) for a, o in zip(xs, outs)]
    sends = [lambda a=a, y=y: a.copy_(y) for a, y in zip(away[:-1], ys[:-1])]
    add = lambda i: sum_slots[(count // 2048,)](slots, half, count, P=p, BLOCK=2048) and None

    def copies(i):
        pair.barrier()
        pair.copies(away[:-1], ys[:-1])
        pair.joined()
        pair.barrier()

    def ring(i):
        pair.barrier()
        pair.chase(works, sends)
        pair.barrier()
        add(i)

    return {("pieces", p): lambda i: on_streams(pair.streams, works), ("copies", p): copies,
            ("sum", p): add, ("ring", p): ring}


def check_gather(pair, ways, m, w, whole, out):
    """Rings against the peer's rows as they lie there, PyTorch's operation against NCCL."""
    k = whole.shape[1]
    for (variant, p), call in ways.items():
        if variant == "ring":
            whole.zero_(), out.zero_()
            call(0)
            rows = torch.cat([pair.mine(m, k)[: m // p], pair.theirs(m, k)[m // p :]])
            check(out[:, :64], rows.float() @ w[:64].float().t(), f"ring {p}")
    fused = ways["torch-fused", 2](0)[1][0]
    ways["nccl-then-product", 1](0)
    check(fused, out, "torch-fused")


def check_scatter(pair, ways, m, x, w, y, half):
    both = torch.empty(2 * m, y.shape[1], device=y.device, dtype=y.dtype)
    multiply(x, w, y)
    dist.all_gather_into_tensor(both, y)
    ours, other = both[pair.rank * m :][:m].clone(), both[pair.peer * m :][:m].clone()
    for (variant, p), call in ways.items():
        if variant == "ring":
            call(0)
            terms = [*cut(other, p)[:-1], cut(ours, p)[-1]]
            exact = sum(t.float() for t in terms)
            check(half.flatten()[: exact.numel()].view_as(exact), exact, f"ring {p}")
    exact = (ours.float() + other.float())[pair.rank * m // 2 :][: m // 2]
    ways["product-then-nccl", 1](0)
    check(half, exact, "nccl")
    check(ways["torch-fused", 2](0), exact, "torch-fused")


def keys_of(model, tp, product, m):
    n, k = shape_of(model, tp, product)
    return dict(ranks=2, model=model, tensor_parallel=tp, product=product, input="bf16", m=m, n=n,
                k=k, connections=int(os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", 8)))


def ranks_case(bench, pair, model, tp, product, m):
    n, k = shape_of(model, tp, product)
    empty = lambda *shape: torch.empty(*shape, device=bench.device, dtype=torch.bfloat16)
    gathers, w, sizes = product in ("qkv", "fc1"), bench.random(n, k), sorted({2, tp})
    if gathers:
        pair.mine(m, k).normal_()
        operands = (m, w, torch.randn_like(empty(m, k)), empty(m, n))
        ways, right = gather_ways(pair, *operands, sizes), check_gather
    else:
        operands = (m, bench.random(m, k, offset=n * k), w, empty(m, n), empty(m // 2, n))
        ways, right = scatter_ways(pair, *operands, sizes), check_scatter
    dist.barrier()
    if m == 1024:
        right(pair, ways, *operands)
        dist.barrier()
    kind = "gather-product" if gathers else "product-scatter"
    found = in_turns(bench, ways, 2e6 * m * n * k / 6e14, repeats=7, align=pair.barrier)
    for (variant, p), one in found.items():
        write(bench, kind, "cublas", variant, one, pieces=p, bytes=2 * m * (k if gathers else n),
              **keys_of(model, tp, product, m))
    if (kind, "ring") not in bench.named:
        bench.named.add((kind, "ring"))
        bench.name_kernels(kind, "cublas", "ring", ways["ring", 2])


def in_step(bench, pair):
    """Both ranks go through the cases of tensor-ranks or tensor-bulk and stop at the same one."""
    run, products, tokens = ranks_case, ("qkv", "fc1", "proj", "fc2"), TOKENS
    if bench.program == "tensor-bulk":
        torch.backends.cuda.preferred_blas_library("cublaslt")  # the margin is for it alone
        run, products, tokens = bulk_case, ("qkv", "fc1"), (2048, 4096, 8192)
    bench.random(1 << 30)
    for case in cases_of(products, tokens, bench.quick):
        late = torch.tensor(int(not bench.has_time()), device=bench.device)
        dist.all_reduce(late)
        bench.skipped += int(late)
        if not int(late):
            run(bench, pair, *case)


def bulk_ways(pair, product, collect, part, whole):
    """The product alone, and each collective alone, beside it, and begun together with it."""
    collective, ends = dist.reduce_scatter_tensor, (part, whole)
    if collect == "all-gather":
        collective, ends = dist.all_gather_into_tensor, (whole, part)
    own, other = pair.mine(*part.shape), pair.theirs(*part.shape)

    def beside(ctas, communicates=True, multiplies=True, lead=20000, margin=None):
        pair.barrier()
        begin, go, mid, end = (torch.cuda.Event(enable_timing=True) for _ in range(4))
        begin.record()
        pair.copier.wait_event(begin)
        with torch.cuda.stream(pair.copier):
            if communicates and ctas is None:
                own.copy_(other)
            elif communicates:
                collective(*ends, group=pair.groups[ctas])
        torch.cuda._sleep(lead) if lead else None
        go.record()
        torch._C._set_sm_carveout_experimental(margin)
        product() if multiplies else None
        torch._C._set_sm_carveout_experimental(None)
        mid.record()
        end.record(pair.copier)
        torch.cuda.current_stream().wait_event(end)
        return [(go, mid), (begin, end)]

    ways = {("product", 0): lambda i: beside(0, communicates=False),
            ("product-margin", 0): lambda i: beside(0, communicates=False, margin=16),
            ("product-together-nccl", 16): lambda i: beside(16, lead=0),
            ("product-margin-beside-nccl", 16): lambda i: beside(16, margin=16),
            ("product-margin-together-nccl", 16): lambda i: beside(16, lead=0, margin=16)}
    for name, ctas in (("nccl", 0), ("nccl", 16), ("nccl", 4), ("copies", None)):
        ways[name, ctas] = lambda i, c=ctas: beside(c, multiplies=False)
        ways["product-beside-" + name, ctas] = lambda i, c=ctas: beside(c)
    return ways


def bulk_case(bench, pair, model, tp, product, m):
    n, k = shape_of(model, tp, product)
    received = 2 * m * k * (tp - 1) // tp
    dy, x, w = bench.random(m, n), bench.random(m, k, offset=m * n), bench.random(n, k, offset=64)
    dx, dw = torch.empty_like(x), torch.empty_like(w)
    whole = torch.randn(received, device=bench.device, dtype=torch.bfloat16)
    part = whole[: received // 2].clone()
    calls = {"all-gather": ("input-gradient", lambda: torch.mm(dy, w, out=dx)),
             "reduce-scatter": ("weight-gradient", lambda: torch.mm(dy.t(), x, out=dw))}
    for collect, (role, call) in calls.items():
        ways = bulk_ways(pair, call, collect, part, whole)
        found = in_turns(bench, ways, 2e6 * m * n * k / 6e14, repeats=7, align=pair.barrier)
        for (variant, ctas), one in found.items():
            marks = dict(zip(("product_us", "collective_us"), one["marks"]))
            if "-" not in variant or variant == "product-margin":  # one of the two alone
                marks.pop("collective_us" if "product" in variant else "product_us")
            write(bench, "bulk", "cublas", variant, one, **marks, role=role, collective=collect,
                  ctas=ctas, bytes=2 * received, **keys_of(model, tp, product, m))


PARTS = {"tensor-pieces": (pieces, 200), "tensor-ranks": (in_step, 200),
         "tensor-bulk": (in_step, 100)}


def main():
    local = int(os.environ["LOCAL_RANK"])
    sys.argv += ["--gpu", str(local)]
    bench = TrainingBench("tensor-pieces", PARTS)
    torch.manual_seed(local + 1)
    dist.init_process_group("nccl")
    line, silent = bench.out.line, lambda *words, **keys: None
    bench.out.line = silent if local > 0 else line
    about = " ".join((ABOUT + __doc__.split("\n\n", 1)[1]).split())
    bench.conditions(dist.get_world_size(), about=about)
    pair = Pair(bench)
    for i, part in enumerate(bench.parts):
        run, seconds = PARTS[part]
        bench.out.line = line if local == 0 or part == "tensor-pieces" else silent
        bench.begin(part, seconds, bench.parts[i + 1 :])
        run(bench, pair)
        bench.note(f"{part}: done, {bench.skipped} cases left out for time so far")
        dist.barrier()
    bench.close()


if __name__ == "__main__":
    main()
