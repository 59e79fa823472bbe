# SPDX-License-Identifier: Apache-2.0
# Asks how products of training run through PyTorch: weight gradients that add, FP8 with casts, experts.
"""`wgrad`: x^T dy into a new BF16 gradient (`mm`), added to a BF16 one (`addmm`), to an FP32 one by the
product (`addmm-fp32`) or by a kernel of its own (`mm-then-add`); training_gemm.cu asks cuBLASLt itself.
`fp8`: products scaled per tensor, per row and per block, and the casts of one operand: `dynamic` finds the
greatest value first, `delayed` knows its scale, `-transposed` writes [k, m] instead of [m, k], `-both` the
two. `grouped`: the products of experts on one device, balanced and with rows that fall as one over the
expert's rank, beside one plain product of all rows.
"""

import random

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from bench import relative_error

FP8, LARGEST = torch.float8_e4m3fn, 448.0
LAYERS = [(6144, 4096), (28672, 4096), (4096, 14336), (3584, 4096), (10240, 8192), (7168, 8192), (8192, 3584)]


def wgrad_case(bench, tokens, out, width):
    n = bench.sets(2 * tokens * (out + width) + 2 * out * width, most=3)
    pairs, at = [], 0
    for _ in range(n):
        pairs.append(
            (bench.random(tokens, out, offset=at), bench.random(tokens, width, offset=at + tokens * out))
        )
        at += tokens * (out + width)
    narrow = [torch.zeros(out, width, device=bench.device, dtype=torch.bfloat16) for _ in range(n)]
    wide = [torch.zeros(out, width, device=bench.device) for _ in range(n)]
    keys = dict(input="bf16", role="weight-gradient", m=out, n=width, k=tokens, groups=1)

    def add_fp32(i):
        dy, x = pairs[i % n]
        return torch.addmm(wide[i % n], dy.t(), x, out_dtype=torch.float32, out=wide[i % n])

    def then_add(i):
        dy, x = pairs[i % n]
        return wide[i % n].add_(dy.t() @ x)

    ways = {
        "mm": ("bf16", lambda i: pairs[i % n][0].t() @ pairs[i % n][1]),
        "addmm": ("bf16", lambda i: narrow[i % n].addmm_(pairs[i % n][0].t(), pairs[i % n][1])),
        "mm-fp32": (
            "fp32",
            lambda i: torch.mm(pairs[i % n][0].t(), pairs[i % n][1], out_dtype=torch.float32),
        ),
        "addmm-fp32": ("fp32", add_fp32),
        "mm-then-add": ("fp32", then_add),
    }
    exact = pairs[0][0][:, :64].float().t() @ pairs[0][1].float()
    for variant, (output, operation) in ways.items():

        def run():
            for x in narrow + wide:
                x.zero_()
            error = relative_error(operation(0)[:64], exact)
            assert error < 0.01, f"relative error {error}"
            bench.measure(
                "gemm", "pytorch", variant, operation, n, burst_ms=3.0, output=output, error=error, **keys
            )

        bench.case(f"{variant} {out} x {width}, {tokens} tokens", run)


def wgrad(bench):
    if bench.once:
        return
    bench.random(1 << 30)
    cases = [(tokens, *layer) for layer in LAYERS for tokens in (1024, 2048, 4096, 8192)]
    for tokens, out, width in cases[:2] if bench.quick else cases:
        bench.case(f"{out} x {width}, {tokens} tokens", lambda: wgrad_case(bench, tokens, out, width))


# Products as m, n, k: forward, input and weight gradients of 8B and 70B layers; all read both operands along k.
def fp8_products(quick):
    cases = []
    for out, width in (
        (6144, 4096),
        (28672, 4096),
        (4096, 14336),
        (10240, 8192),
        (8192, 28672),
        (57344, 8192),
    ):
        for tokens in (2048, 4096, 8192, 16384):
            if 2 * tokens * out * width > 5e12:
                continue
            cases += [("forward", tokens, out, width), ("weight-gradient", out, width, tokens)]
            if tokens in (4096, 16384):
                cases.append(("input-gradient", tokens, width, out))
    return cases[:2] if quick else cases


def blocks_1x128(x):
    """x in FP8 and scales of 128 columns each, [rows, columns / 128] along the rows as the product takes them."""
    parts = x.view(x.shape[0], -1, 128).float()
    scale = parts.abs().amax(-1).clamp(min=1e-12) / LARGEST
    return (parts / scale[..., None]).view_as(x).to(FP8), scale.t().contiguous().t()


def blocks_128x128(x):
    rows, columns = x.shape
    parts = x.view(rows // 128, 128, columns // 128, 128).float()
    scale = parts.abs().amax((1, 3)).clamp(min=1e-12) / LARGEST
    return (parts / scale[:, None, :, None]).view_as(x).to(FP8), scale


def by_tensor(x):
    scale = x.abs().amax().float() / LARGEST
    return (x.float() / scale).to(FP8), scale


def by_row(x):
    scale = x.abs().amax(1, keepdim=True).float() / LARGEST
    return (x.float() / scale).to(FP8), scale


def padded(scale):
    """A 128 x 128 scale [rows, columns] as the product takes it: columns to a multiple of four, along them."""
    return F.pad(scale, (0, -scale.shape[1] % 4)).contiguous().t()


def scaled_product(way, role, a, b, output):
    """A call of the product a @ b^T, both [rows, k] in BF16, quantised here."""
    if way == "bf16":
        return lambda: a @ b.t()
    fast = role == "forward"
    if way in ("tensor", "row"):
        (qa, sa), (qb, sb) = ((by_tensor if way == "tensor" else by_row)(x) for x in (a, b))
        sb = sb if way == "tensor" else sb.t().contiguous()
        return lambda: torch._scaled_mm(qa, qb.t(), sa, sb, out_dtype=output, use_fast_accum=fast)
    kinds = F.ScalingType
    qa, sa = blocks_1x128(a)
    if way == "block-128":
        qb, sb = blocks_1x128(b)
        recipe = kinds.BlockWise1x128
    else:
        qb, sb = blocks_128x128(b)
        sb, recipe = padded(sb), kinds.BlockWise128x128
    return lambda: F.scaled_mm(qa, qb.t(), sa, kinds.BlockWise1x128, sb, recipe, output_dtype=output)


def fp8_product_case(bench, role, m, n, k):
    ways = [
        ("bf16", torch.bfloat16),
        ("tensor", torch.bfloat16),
        ("row", torch.bfloat16),
        ("block-128" if role == "weight-gradient" else "block-128x128", torch.bfloat16),
    ]
    if role == "weight-gradient":
        ways += [("tensor", torch.float32), ("block-128", torch.float32)]
    a, b = bench.random(m, k), bench.random(n, k, offset=m * k)
    exact = a[:64].float() @ b.float().t()
    for way, output in ways:

        def run():
            calls = [
                scaled_product(way, role, bench.random(m, k, offset=j * 4096), b, output)
                for j in range(bench.sets(m * k + n * k + 2 * m * n, most=2))
            ]
            error = relative_error(calls[0]()[:64], exact)
            assert error < 0.08, f"relative error {error}"
            bench.measure(
                "gemm",
                "pytorch",
                way,
                lambda i: calls[i % len(calls)](),
                len(calls),
                burst_ms=4.0,
                repeats=3 if m * n * k > 1e12 else 5,
                input="bf16" if way == "bf16" else "fp8",
                output="fp32" if output == torch.float32 else "bf16",
                role=role,
                m=m,
                n=n,
                k=k,
                groups=1,
                error=error,
            )

        name = f"product {way} {role} {m} x {n} x {k} {output}"
        bench.case(name, run, variant=way, role=role, m=m, n=n, k=k)


@triton.jit
def cast_both(x, inverse, straight, turned, amax, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    values = tl.load(x + row[:, None].to(tl.int64) * columns + column[None, :]).to(tl.float32)
    tl.atomic_max(amax, tl.max(tl.max(tl.abs(values), 1), 0))
    scaled = tl.clamp(values * tl.load(inverse), -448.0, 448.0).to(tl.float8e4nv)
    tl.store(straight + row[:, None].to(tl.int64) * columns + column[None, :], scaled)
    tl.store(turned + column[:, None].to(tl.int64) * rows + row[None, :], tl.trans(scaled))


def cast_both_ways(x, inverse, amax):
    rows, columns = x.shape
    straight = torch.empty(rows, columns, device=x.device, dtype=FP8)
    turned = torch.empty(columns, rows, device=x.device, dtype=FP8)
    cast_both[(rows // 128, columns // 64)](
        x, inverse, straight, turned, amax, rows, columns, BM=128, BN=64, num_warps=8
    )
    return straight, turned


def clamped(x, inverse):
    return (x.float() * inverse).clamp(-LARGEST, LARGEST).to(FP8)


def dynamic(x):
    scale = x.abs().amax().float() / LARGEST
    return clamped(x, 1 / scale), scale


def delayed_amax(x, inverse):
    return clamped(x, inverse), x.abs().amax()


def transposed(x, inverse):
    return clamped(x, inverse).t().contiguous()


def both(x, inverse):
    y = clamped(x, inverse)
    return y, y.t().contiguous()


def blocks_both(x):
    return blocks_1x128(x), blocks_1x128(x.t().contiguous())


CASTS = {
    "dynamic": (dynamic, False),
    "delayed": (clamped, True),
    "delayed-amax": (delayed_amax, True),
    "delayed-transposed": (transposed, True),
    "delayed-both": (both, True),
    "row": (by_row, False),
    "block-128": (blocks_1x128, False),
    "block-128x128": (blocks_128x128, False),
    "block-128-both": (blocks_both, False),
}


def cast_case(bench, library, variant, rows, width):
    torch._dynamo.reset()
    function, scaled = CASTS[variant] if variant in CASTS else (None, True)
    if library == "inductor":
        function = torch.compile(function, dynamic=False)
    n = bench.sets(3 * rows * width, most=8)
    xs = [bench.random(rows, width, offset=i * rows * width) for i in range(n)]
    inverse = torch.full((), 80.0, device=bench.device)
    amax = torch.zeros((), device=bench.device)
    if library == "triton":
        straight, turned = cast_both_ways(xs[0], inverse, amax)
        assert torch.equal(
            straight.t().contiguous().view(torch.uint8), turned.view(torch.uint8)
        ), "the transpose is wrong"
        operation = lambda i: cast_both_ways(xs[i % n], inverse, amax)
    else:
        operation = lambda i: function(xs[i % n], inverse) if scaled else function(xs[i % n])
    bench.measure(
        "quantise",
        library,
        variant,
        operation,
        n,
        compiled=library != "eager",
        input="bf16",
        output="fp8",
        rows=rows,
        width=width,
        count=rows * width,
    )


def fp8(bench):
    bench.random(1 << 30)
    shapes = [(4096, 4096), (8192, 4096), (8192, 14336), (16384, 8192)]
    for rows, width in shapes[:1] if bench.quick else shapes:
        for library, variants in (
            ("triton", ["delayed-amax-both"]),
            ("inductor", CASTS),
            ("eager", ["dynamic", "delayed", "row", "delayed-transposed"]),
        ):
            for variant in variants:
                if bench.once and library == "eager":
                    continue
                bench.case(
                    f"cast {library} {variant} {rows} x {width}",
                    lambda: cast_case(bench, library, variant, rows, width),
                )
    for role, m, n, k in [] if bench.once else fp8_products(bench.quick):
        bench.case(f"products {role} {m} x {n} x {k}", lambda: fp8_product_case(bench, role, m, n, k))


# hidden, ffn of an expert, experts, experts on one device
EXPERTS = {
    "mixtral-8x7b": (4096, 14336, 8, (1, 2, 8)),
    "olmoe-1b-7b": (2048, 1024, 64, (8, 32)),
    "qwen3-30b-a3b": (2048, 768, 128, (4, 16, 32)),
    "qwen3-235b-a22b": (4096, 1536, 128, (4, 16, 32)),
    "deepseek-v3": (7168, 2048, 256, (4, 8, 32)),
}


def row_counts(local, rows, skewed):
    """Rows of each expert: all alike, or falling as one over the rank, in an order drawn once."""
    if not skewed:
        return [rows] * local
    shares = [1 / (rank + 1) for rank in range(local)]
    counts = [int(rows * local * share / sum(shares)) for share in shares]
    counts[0] += rows * local - sum(counts)
    random.Random(local).shuffle(counts)
    return counts


def grouped_case(bench, model, product, local, rows, skewed):
    hidden, ffn, experts, _ = EXPERTS[model]
    n, k = (2 * ffn, hidden) if product == "up" else (hidden, ffn)
    counts = row_counts(local, rows, skewed)
    total = sum(counts)
    x, dy = bench.random(total, k), bench.random(total, n, offset=total * k)
    size = local * n * k
    sets = bench.sets(2 * (size + total * (n + k)), most=2)
    weights = [bench.random(local, n, k, offset=total * (n + k) + i * size) for i in range(sets)]
    ends = torch.tensor(counts, device=bench.device).cumsum(0).to(torch.int32)
    calls = {
        "forward": lambda i: torch._grouped_mm(x, weights[i % sets].transpose(-2, -1), offs=ends),
        "input-gradient": lambda i: torch._grouped_mm(dy, weights[i % sets], offs=ends),
        "weight-gradient": lambda i: torch._grouped_mm(dy.t(), x, offs=ends),
    }
    first, part = counts[0], min(counts[0], 256)
    exact = {
        "forward": x[:part].float() @ weights[0][0].float().t(),
        "input-gradient": dy[:part].float() @ weights[0][0].float(),
        "weight-gradient": dy[:first, :64].float().t() @ x[:first].float(),
    }
    for role, call in calls.items():
        found = call(0)
        found = found[0, :64] if role == "weight-gradient" else found[:part]
        error = relative_error(found, exact[role])
        assert error < 0.01, f"{role}: relative error {error}"
        bench.measure(
            "grouped-gemm",
            "grouped-mm",
            "skewed" if skewed else "balanced",
            call,
            sets,
            burst_ms=3.0,
            repeats=3,
            input="bf16",
            output="bf16",
            role=role,
            model=model,
            product=product,
            n=n,
            k=k,
            groups=local,
            experts=experts,
            rows=rows,
            total=total,
            error=error,
        )


def plain_case(bench, total, n, k):
    x, dy = bench.random(total, k), bench.random(total, n, offset=total * k)
    w = bench.random(n, k, offset=total * (n + k))
    for role, call in {
        "forward": lambda i: x @ w.t(),
        "input-gradient": lambda i: dy @ w,
        "weight-gradient": lambda i: dy.t() @ x,
    }.items():
        bench.measure(
            "gemm",
            "pytorch",
            "plain",
            call,
            burst_ms=3.0,
            repeats=3,
            input="bf16",
            output="bf16",
            role=role,
            n=n,
            k=k,
            total=total,
            groups=1,
        )


def grouped(bench):
    if bench.once:
        return
    bench.random(1 << 31)
    cases, plain = [], set()
    for model, (hidden, ffn, _, locals_) in EXPERTS.items():
        for local in locals_:
            for rows in (32, 128, 512, 2048, 4096):
                for product, n, k in (("up", 2 * ffn, hidden), ("down", hidden, ffn)):
                    if 2 * local * rows * n * k > 6e12 or local * (rows * (n + k) + n * k) > 1 << 31:
                        continue
                    cases.append((model, product, local, rows, False))
                    if product == "up" and local > 1 and rows in (128, 512, 2048):
                        cases.append((model, product, local, rows, True))
                    plain.add((local * rows, n, k))
    random.Random(1).shuffle(cases)
    plain = sorted(plain)
    random.Random(2).shuffle(plain)
    for case in cases[:3] if bench.quick else cases:
        if bench.has_time(0.75):
            bench.case(f"grouped {case}", lambda: grouped_case(bench, *case))
        else:
            bench.skipped += 1
    for case in plain[:2] if bench.quick else plain:
        bench.case(f"plain {case}", lambda: plain_case(bench, *case))
