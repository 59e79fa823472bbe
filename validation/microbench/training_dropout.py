# SPDX-License-Identifier: Apache-2.0
# Asks what dropout costs in attention and after it, and what a loss costs by vocabulary.
"""Attention runs causal, in BF16, forward in training (with what backward needs) and backward, without
dropout and with one of 0.1. `bias-dropout-add` is dropout(x + bias) + residual, `dropout-add` the same
without a bias; backward gives the gradients of all operands. The loss is the mean cross-entropy of BF16
logits and its gradient: `eager-fp32` casts the logits first, `eager-bf16` does not, `inductor` is the
former compiled.
"""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from training_bench import gradients, leaf

BACKENDS = {"flash2": SDPBackend.FLASH_ATTENTION, "cudnn-attention": SDPBackend.CUDNN_ATTENTION}
ROWS = [
    (4096, 4096),
    (8192, 4096),
    (4096, 12288),
    (2048, 4096),
    (16384, 4096),
    (4096, 8192),
    (16384, 8192),
    (16384, 12288),
]
VOCABULARIES = [32000, 50304, 100352, 128256, 152064, 256000]


def attention_cases(quick):
    """(batch, sequence, heads, head dim)."""
    if quick:
        return [(4, 2048, 12, 64), (1, 2048, 32, 128)]
    cases = []
    for dim in (128, 64):
        for sequence in (2048, 4096, 8192):
            cases += [
                (8192 // sequence, sequence, 32, dim),
                (16384 // sequence, sequence, 12, dim),
                (1, sequence, 96, dim),
            ]
    return cases


def heads_first(bench, b, s, h, d, offset=0):
    return bench.random(b, s, h, d, offset=offset).transpose(1, 2)


def check_attention(bench, library, p, d):
    """Without dropout against FP32; with it the mean over values of one, which dropout leaves."""
    q, k, v = (leaf(heads_first(bench, 2, 512, 4, d, i << 22)) for i in range(3))
    if p == 0:
        exact = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
        with sdpa_kernel(BACKENDS[library]):
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        error = float((found.float() - exact).norm() / exact.norm())
        assert error < 0.02, f"relative error {error}"
        return error
    with sdpa_kernel(BACKENDS[library]):
        found = F.scaled_dot_product_attention(q, k, torch.ones_like(v), dropout_p=p, is_causal=True)
    mean = float(found.float().mean())
    assert abs(mean - 1) < 0.02, f"the mean over values of one is {mean}"
    assert float(found.float().std()) > 1e-3, "nothing was dropped"
    return None


def attention_case(bench, library, case, p, checked):
    b, s, h, d = case
    if (library, p, d) not in checked:
        checked[library, p, d] = check_attention(bench, library, p, d)
    n = bench.sets(8 * b * s * h * d, most=4)
    sets, at = [], 0
    for _ in range(n):
        sets.append([leaf(heads_first(bench, b, s, h, d, at + i * b * s * h * d)) for i in range(3)])
        at += 3 * b * s * h * d
    grad = heads_first(bench, b, s, h, d, 64)
    keys = dict(
        input="bf16",
        batch=b,
        heads=h,
        kv_heads=h,
        q_length=s,
        kv_length=s,
        qk_dim=d,
        v_dim=d,
        causal=1,
        window=0,
        dropout=p,
    )

    def forward(i):
        return F.scaled_dot_product_attention(*sets[i % n], dropout_p=p, is_causal=True)

    with sdpa_kernel(BACKENDS[library]):
        variant = "dropout" if p else "none"
        bench.measure(
            "attention-forward",
            library,
            variant,
            forward,
            n,
            in_graph=False,
            error=checked[library, p, d],
            **keys,
        )
        outputs = [forward(i) for i in range(n)]
        bench.measure(
            "attention-backward",
            library,
            variant,
            gradients(outputs, sets, [grad]),
            n,
            in_graph=False,
            **keys,
        )


def dropout_add(x, bias, residual, p):
    return F.dropout(x + bias, p, True) + residual


def dropout_add_plain(x, residual, p):
    return F.dropout(x, p, True) + residual


def dropout_only(x, p):
    return F.dropout(x, p, True)


FUNCTIONS = {
    "bias-dropout-add": (dropout_add, 3),
    "dropout-add": (dropout_add_plain, 2),
    "dropout": (dropout_only, 1),
}


def elementwise_operands(bench, name, rows, width, n):
    """n sets of x, bias and residual as the function takes them."""
    sets, size = [], rows * width
    bias = leaf(bench.random(width))
    for i in range(n):
        x, residual = (leaf(bench.random(rows, width, offset=(2 * i + j) * size)) for j in range(2))
        sets.append({3: (x, bias, residual), 2: (x, residual), 1: (x,)}[FUNCTIONS[name][1]])
    return sets


def elementwise_case(bench, name, library, rows, width, p):
    if bench.once and library != "inductor":
        return
    torch._dynamo.reset()
    function = FUNCTIONS[name][0]
    if library == "inductor":
        function = torch.compile(function, dynamic=False)
    n = bench.sets(6 * rows * width, most=8)
    sets = elementwise_operands(bench, name, rows, width, n)
    grads = [bench.random(rows, width, offset=i * rows * width + 64) for i in range(n)]
    keys = dict(input="bf16", rows=rows, width=width, count=rows * width, dropout=p)
    outputs = [function(*one, p) for one in sets]
    if p:
        kept = (
            float((outputs[0] - sets[0][-1] != 0).float().mean())
            if name != "dropout"
            else float((outputs[0] != 0).float().mean())
        )
        assert abs(kept - (1 - p)) < 0.02, f"{kept} of the elements are kept"
    bench.measure(
        "elementwise",
        library,
        name + "-forward",
        lambda i: function(*sets[i % n], p),
        n,
        compiled=True,
        **keys,
    )
    bench.measure(
        "elementwise", library, name + "-backward", gradients(outputs, sets, grads), n, compiled=True, **keys
    )


def dropout(bench):
    torch._functorch.config.donated_buffer = False  # a backward runs many times
    bench.random(3 << 29)
    checked = {}
    for case in [] if bench.once else attention_cases(bench.quick):
        for library in BACKENDS:
            for p in (0.0, 0.1):
                what = f"attention {library} {case} dropout {p}"
                bench.case(what, lambda: attention_case(bench, library, case, p, checked))
    for rows, width in ROWS[:2] if bench.quick else ROWS:
        for library in ("eager", "inductor"):
            for name in FUNCTIONS:
                for p in (0.1,) if name == "dropout" else (0.0, 0.1):
                    if name != "bias-dropout-add" and (rows, width) not in ROWS[:5:2]:
                        continue
                    what = f"{library} {name} {rows} x {width} dropout {p}"
                    bench.case(what, lambda: elementwise_case(bench, name, library, rows, width, p))
    torch._functorch.config.donated_buffer = True


def loss_fp32(logits, targets):
    return F.cross_entropy(logits.float(), targets)


def loss_bf16(logits, targets):
    return F.cross_entropy(logits, targets)


def check_loss(function, logits, targets):
    """The loss and a slice of its gradient against FP32."""
    loss = function(logits, targets)
    grad = torch.autograd.grad(loss, logits)[0]
    wide = logits.detach()[:64].float()
    exact = (wide.softmax(-1) - F.one_hot(targets[:64], wide.shape[1])) / logits.shape[0]
    error = float((grad[:64].float() - exact).norm() / exact.norm())
    assert error < 0.02, f"relative error of the gradient {error}"
    return error


def loss_case(bench, library, rows, vocabulary):
    torch._dynamo.reset()
    function = {"eager-fp32": loss_fp32, "eager-bf16": loss_bf16, "inductor": loss_fp32}[library]
    if library == "inductor":
        function = torch.compile(function, dynamic=False)
    n = bench.sets(2 * rows * vocabulary, most=2)
    sets = [leaf(bench.random(rows, vocabulary, offset=i * rows * vocabulary)) for i in range(n)]
    targets = torch.randint(0, vocabulary, (rows,), device=bench.device)
    keys = dict(
        input="bf16",
        rows=rows,
        vocabulary=vocabulary,
        count=rows * vocabulary,
        error=check_loss(function, sets[0], targets),
    )

    def both(i):
        return torch.autograd.grad(function(sets[i % n], targets), sets[i % n])

    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    both(0)
    keys["peak_bytes"] = torch.cuda.max_memory_allocated() - before
    bench.measure(
        "cross-entropy",
        library,
        "forward",
        lambda i: function(sets[i % n], targets),
        compiled=True,
        in_graph=False,
        repeats=3,
        **keys,
    )
    bench.measure("cross-entropy", library, "both", both, compiled=True, in_graph=False, repeats=5, **keys)


def loss(bench):
    cases = [(rows, v) for rows in (8192, 2048, 16384, 4096) for v in VOCABULARIES]
    for rows, vocabulary in cases[:3] if bench.quick else cases:
        for library in ("inductor", "eager-fp32", "eager-bf16"):
            if library == "inductor" and (
                rows == 4096 or rows == 16384 and vocabulary not in (32000, 128256, 256000)
            ):
                continue
            if library != "inductor" and bench.once:
                continue
            what = f"{library} {rows} x {vocabulary}"
            bench.case(
                what,
                lambda: loss_case(bench, library, rows, vocabulary),
                library=library,
                rows=rows,
                vocabulary=vocabulary,
            )
            if rows * vocabulary > 1 << 30:
                bench.free()
