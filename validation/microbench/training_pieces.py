# SPDX-License-Identifier: Apache-2.0
# Asks what pieces of ring attention and of an expert layer's routing take, forward and backward.
"""`ring`: a device of a ring holds n tokens; it attends its own causally (`causal`), the first half of
another's keys with all queries (`all-to-half`), another's keys with half its queries (`half-to-all`), or
all to all without a mask (`full`); `whole` is causal attention of one device over everything. Two partial
results are merged by their log-sum-exps. `router`: the product, the scores, top-k, the order of the rows by
expert, the gather of the rows (`permute`) and the weighted sum of the experts' rows of a token
(`unpermute`).
"""

import random

import torch
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel

from training_bench import gradients, leaf
from training_dropout import BACKENDS

PIECES = {
    "causal": (1, 1, True),
    "all-to-half": (1, 2, False),
    "half-to-all": (2, 1, False),
    "full": (1, 1, False),
    "whole": (1, 1, True),
}


def ring_operands(bench, heads, kv, d, q_tokens, k_tokens, n):
    sets, at = [], 0
    for _ in range(n):
        one = []
        for tokens, count in ((q_tokens, heads), (k_tokens, kv), (k_tokens, kv)):
            one.append(leaf(bench.random(1, tokens, count, d, offset=at).transpose(1, 2)))
            at += tokens * count * d
        sets.append(one)
    return sets


def ring_case(bench, library, piece, heads, kv, d, tokens):
    q_part, k_part, causal = PIECES[piece]
    q_tokens, k_tokens = tokens // q_part, tokens // k_part
    n = bench.sets(4 * d * (q_tokens * heads + k_tokens * kv), most=3)
    sets = ring_operands(bench, heads, kv, d, q_tokens, k_tokens, n)
    grad = bench.random(1, q_tokens, heads, d, offset=64).transpose(1, 2)

    def forward(i):
        return F.scaled_dot_product_attention(*sets[i % n], is_causal=causal, enable_gqa=heads != kv)

    flop = 4 * q_tokens * k_tokens * heads * d / (2 if causal else 1)
    keys = dict(
        input="bf16",
        batch=1,
        heads=heads,
        kv_heads=kv,
        q_length=q_tokens,
        kv_length=k_tokens,
        qk_dim=d,
        v_dim=d,
        causal=int(causal),
        window=0,
        tokens=tokens,
    )
    repeats = 3 if flop > 4e11 else 5
    with sdpa_kernel(BACKENDS[library]):
        bench.measure(
            "attention-forward",
            library,
            piece,
            forward,
            n,
            in_graph=False,
            repeats=repeats,
            flop=flop,
            **keys,
        )
        outputs = [forward(i) for i in range(n)]
        bench.measure(
            "attention-backward",
            library,
            piece,
            gradients(outputs, sets, [grad]),
            n,
            in_graph=False,
            repeats=repeats,
            flop=2.5 * flop,
            **keys,
        )


def merge(out, lse, part, part_lse):
    """Adds a partial result to the FP32 sum so far."""
    weight = torch.sigmoid(part_lse - lse)[..., None]
    return out - weight * (out - part.float()), torch.logaddexp(lse, part_lse)


def merge_bf16(out, lse, part, part_lse):
    """Two BF16 results, as when every step's is kept and they are corrected at the end."""
    new = torch.logaddexp(lse, part_lse)
    return (
        (
            out.float() * (lse - new).exp()[..., None] + part.float() * (part_lse - new).exp()[..., None]
        ).bfloat16(),
        new,
    )


def add_gradient(sum_, part):
    return sum_ + part.float()


def check_merge(bench):
    """Two halves of the keys merged against attention over all of them."""
    q, k, v = (bench.random(1, 4, 512, 64, offset=i << 20) for i in range(3))
    halves = [
        torch.ops.aten._scaled_dot_product_flash_attention(q, k[:, :, s], v[:, :, s])[:2]
        for s in (slice(0, 256), slice(256, 512))
    ]
    found, _ = merge(halves[0][0].float(), halves[0][1], *halves[1])
    exact = F.scaled_dot_product_attention(q.float(), k.float(), v.float())
    error = float((found - exact).norm() / exact.norm())
    assert error < 0.01, f"relative error {error}"


def merge_case(bench, library, variant, tokens, heads, d):
    torch._dynamo.reset()
    n = bench.sets(12 * tokens * heads * d, most=4)
    parts = [bench.random(1, tokens, heads, d, offset=i * tokens * heads * d) for i in range(2 * n)]
    lses = [torch.randn(1, tokens, heads, device=bench.device) for _ in range(2 * n)]
    wide = [x.float() for x in parts[:n]]
    function = {"merge-fp32": merge, "merge-bf16": merge_bf16, "gradient-add": add_gradient}[variant]
    if library == "inductor":
        function = torch.compile(function, dynamic=False)

    def operation(i):
        j = i % n
        if variant == "gradient-add":
            return function(wide[j], parts[n + j])
        return function((wide if variant == "merge-fp32" else parts)[j], lses[j], parts[n + j], lses[n + j])

    bench.measure(
        "ring-merge",
        library,
        variant,
        operation,
        n,
        compiled=library == "inductor",
        input="bf16",
        tokens=tokens,
        heads=heads,
        width=d,
        count=tokens * heads * d,
    )


def ring(bench):
    bench.random(1 << 30)
    cases = [
        (piece, 32, 8, 128, n)
        for n in (1024, 2048, 4096, 8192, 16384)
        for piece in PIECES
        if piece != "whole"
    ]
    cases += [
        (piece, 8, 1, 128, n) for n in (2048, 8192, 16384, 32768) for piece in PIECES if piece != "whole"
    ]
    cases += [("half-to-all", 8, 1, 128, 65536), ("causal", 8, 1, 128, 65536)]
    cases += [("whole", 32, 8, 128, n) for n in (8192, 16384, 32768)]
    cases += [("whole", 8, 1, 128, n) for n in (32768, 65536, 131072)]
    cases += [(piece, 16, 16, 64, n) for n in (2048, 8192) for piece in PIECES if piece != "whole"]
    cases += [("whole", 16, 16, 64, 32768)]
    random.Random(3).shuffle(cases)
    bench.case("merge", lambda: check_merge(bench))
    for tokens in (2048,) if bench.quick else (2048, 8192, 32768):
        for variant in ("merge-fp32", "merge-bf16", "gradient-add"):
            for library in ("inductor",) if bench.once else ("inductor", "eager"):
                bench.case(
                    f"{library} {variant} {tokens}",
                    lambda: merge_case(bench, library, variant, tokens, 32, 128),
                )
    for case in [] if bench.once else cases[:2] if bench.quick else cases:
        for library in BACKENDS:
            bench.case(f"{library} {case}", lambda: ring_case(bench, library, *case))


# experts, experts of a token, hidden, how scores are made
ROUTERS = {
    "mixtral-8x7b": (8, 2, 4096, "softmax"),
    "llama-4-scout": (16, 1, 5120, "sigmoid"),
    "olmoe-1b-7b": (64, 8, 2048, "softmax"),
    "qwen3-30b-a3b": (128, 8, 2048, "softmax"),
    "qwen3-235b-a22b": (128, 8, 4096, "softmax"),
    "deepseek-v3": (256, 8, 7168, "sigmoid"),
    "512-experts": (512, 8, 4096, "softmax"),
}


def scores_of(logits, kind):
    wide = logits.float()
    return wide.softmax(-1) if kind == "softmax" else wide.sigmoid()


def route(logits, kind, topk):
    gates, chosen = scores_of(logits, kind).topk(topk, -1)
    return gates / gates.sum(-1, keepdim=True), chosen


def permute(x, source):
    return x.index_select(0, source)


def unpermute(y, gates, place):
    """y: rows by expert; place[t, j]: the row of token t's j-th expert."""
    return (y[place] * gates[..., None].to(y.dtype)).sum(1)


def unpermute_backward(grad, y, gates, source, slot, place):
    """Gradients of the experts' rows and of the gates."""
    flat = gates.reshape(-1)[slot]
    dgates = (y[place] * grad[:, None]).sum(-1, dtype=torch.float32)
    return grad[source] * flat[:, None].to(grad.dtype), dgates


def sum_rows(grad, place):
    """The gradient of permute: the sum of a token's rows, gathered."""
    return grad[place].sum(1)


def routing(bench, rows, experts, topk):
    chosen = torch.rand(rows, experts, device=bench.device).topk(topk, -1).indices
    slot = chosen.flatten().argsort(stable=True)
    place = torch.empty_like(slot)
    place[slot] = torch.arange(rows * topk, device=bench.device)
    return chosen, slot, slot // topk, place.view(rows, topk)


def score_operations(bench, xs, w, logits, kind, topk, chosen, experts):
    probabilities = scores_of(logits[0], kind)
    wide = w.float()
    ones = torch.ones(chosen.numel(), device=bench.device, dtype=torch.int64)
    n = len(logits)
    return {
        "product": lambda i: F.linear(xs[i % len(xs)], w),
        "product-fp32": lambda i: F.linear(xs[i % len(xs)].float(), wide),
        "scores": lambda i: scores_of(logits[i % n], kind),
        "topk": lambda i: probabilities.topk(topk, -1),
        "route": lambda i: route(logits[i % n], kind, topk),
        "order": lambda i: chosen.flatten().argsort(stable=True),
        "counts": lambda i: torch.zeros(experts, device=bench.device, dtype=torch.int64).scatter_add_(
            0, chosen.flatten(), ones
        ),
    }


def router_case(bench, name, rows, library):
    torch._dynamo.reset()
    experts, topk, hidden, kind = ROUTERS[name]
    chosen, slot, source, place = routing(bench, rows, experts, topk)
    n = bench.sets(2 * rows * hidden, most=4)
    xs = [bench.random(rows, hidden, offset=i * rows * hidden) for i in range(n)]
    m = bench.sets(2 * rows * topk * hidden, most=2)
    ys = [bench.random(rows * topk, hidden, offset=i * rows * topk * hidden + 64) for i in range(m)]
    w = bench.random(experts, hidden, offset=128)
    logits = [bench.random(rows, experts, offset=i * rows * experts) for i in range(4)]
    gates = route(logits[0], kind, topk)[0]
    eager = score_operations(bench, xs, w, logits, kind, topk, chosen, experts)
    eager["permute"] = lambda i: permute(xs[i % n], source)
    eager["permute-backward-add"] = lambda i: torch.zeros_like(xs[0]).index_add_(0, source, ys[i % m])
    calls = {
        "route": (route, lambda i: (logits[i % 4], kind, topk)),
        "permute": (permute, lambda i: (xs[i % n], source)),
        "permute-backward": (sum_rows, lambda i: (ys[i % m], place)),
        "unpermute": (unpermute, lambda i: (ys[i % m], gates, place)),
        "unpermute-backward": (
            unpermute_backward,
            lambda i: (xs[i % n], ys[i % m], gates, source, slot, place),
        ),
    }
    identity = unpermute(permute(xs[0], source), torch.full_like(gates, 1 / topk), place)
    assert float((identity - xs[0]).float().norm() / xs[0].float().norm()) < 0.02, "rows come back wrong"
    keys = dict(input="bf16", rows=rows, hidden=hidden, experts=experts, topk=topk, scores=kind, model=name)
    for variant in sorted(set(eager) | set(calls)):
        if library == "inductor":
            if variant not in calls:
                continue
            function, arguments = torch.compile(calls[variant][0], dynamic=False), calls[variant][1]
            operation = lambda i: function(*arguments(i))
        else:
            operation = eager.get(variant) or (lambda i, c=calls.get(variant): c[0](*c[1](i)))
        bench.case(
            f"{library} {variant} {name} {rows}",
            lambda: bench.measure(
                "router",
                library,
                variant,
                operation,
                2,
                compiled=library == "inductor",
                burst_ms=3.0,
                repeats=3,
                **keys,
            ),
        )


def router(bench):
    bench.random(1 << 30)
    cases = [
        (name, rows, library)
        for rows in (8192, 16384, 4096)
        for name in ROUTERS
        for library in ("eager", "inductor")
    ]
    for name, rows, library in cases[:2] if bench.quick else cases:
        if library == "inductor" and rows != 8192 or library == "eager" and bench.once:
            continue
        bench.case(f"{name} {rows}", lambda: router_case(bench, name, rows, library))
