# SPDX-License-Identifier: Apache-2.0
# Asks what a framework's own kernels draw when they run for a second and more without a pause.
"""Kind "power", as power.cu prints: kernels between products that a training step really runs, which
compute and shuffle more than a plain copy does, attention, and a whole compiled layer."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from llama_layer import Layer, rms_norm, rotary_table, swiglu

SECONDS = 3.0  # the sensor averages over one second


def ask(bench, variant, moved, call, flop=0.0, fitted=True, sets=1):
    """`moved` bytes and `flop` operations of one call(i); work of several kinds is only shown."""
    def work():
        timing = bench.sustained(call, SECONDS, sets)
        bench.out.line("sample", part=bench.program, kind="power", library="eager",
                       variant=variant, input="bf16", mode="sustained", bytes=float(moved),
                       flop=float(flop), occupied=int(fitted), **timing)
    bench.attempt(f"power of {variant}", work)
    torch.cuda.empty_cache()


def streams(bench):
    rows, width = 16384, 8192
    e = float(rows * width)
    norm, gate = torch.compile(rms_norm, dynamic=False), torch.compile(swiglu, dynamic=False)
    xs = [bench.random(rows, width, offset=i * rows * width) for i in range(3)]
    scale = torch.ones(width, device=bench.device, dtype=torch.bfloat16)
    with torch.no_grad():
        ask(bench, "norm compiled", 4 * e, lambda i: norm(xs[i % 3], scale), sets=3)
        ask(bench, "norm eager", 4 * e, lambda i: rms_norm(xs[i % 3], scale), sets=3)
        ask(bench, "swiglu compiled", 3 * e, lambda i: gate(xs[i % 3]), sets=3)
        ask(bench, "swiglu eager", 6 * e, lambda i: swiglu(xs[i % 3]), sets=3)
        ask(bench, "add", 6 * e, lambda i: xs[i % 3] + xs[(i + 1) % 3], sets=3)
        ask(bench, "cast to fp8", 3 * e, lambda i: xs[i % 3].to(torch.float8_e4m3fn), sets=3)
        ask(bench, "largest absolute value", 6 * e, lambda i: xs[i % 3].abs().amax())
        ask(bench, "transpose", 4 * e, lambda i: xs[i % 3].t().contiguous(), sets=3)
        ask(bench, "softmax", 4 * e, lambda i: torch.softmax(xs[i % 3], -1), sets=3)


def backwards(bench):
    rows, width = 16384, 8192
    e = float(rows * width)
    norm = torch.compile(rms_norm, dynamic=False)
    x = bench.random(rows, width).detach().requires_grad_()
    scale = torch.ones(width, device=bench.device, dtype=torch.bfloat16, requires_grad=True)
    gradient = bench.random(rows, width, offset=rows * width)
    y = norm(x, scale)
    ask(bench, "norm backward compiled", 6 * e,
        lambda i: torch.autograd.grad(y, [x, scale], gradient, retain_graph=True))
    logits = bench.random(4096, 32000).detach().requires_grad_()
    target = torch.randint(0, 32000, (4096,), device=bench.device)
    ask(bench, "cross-entropy eager", 0, lambda i: F.cross_entropy(logits.float(), target),
        fitted=False)


def optimizer(bench):
    count = 1 << 28
    p = torch.zeros(count, device=bench.device, dtype=torch.bfloat16, requires_grad=True)
    p.grad = torch.randn_like(p)
    step = torch.optim.AdamW([p], lr=1e-5, fused=True, capturable=True).step
    ask(bench, "adamw fused", 14.0 * count, lambda i: step())


def attention_and_layer(bench):
    q, k, v = (bench.random(1, 8192, heads, 128, offset=i << 26).transpose(1, 2)
               for i, heads in enumerate((32, 8, 8)))
    flop = 2 * 2 * 32 * 8192 * 8192 * 128 / 2
    for name, backend in [("flash2", SDPBackend.FLASH_ATTENTION),
                          ("cudnn", SDPBackend.CUDNN_ATTENTION)]:
        with torch.no_grad(), sdpa_kernel(backend):
            ask(bench, f"attention {name}", 0, lambda i: F.scaled_dot_product_attention(
                q, k, v, is_causal=True, enable_gqa=True), flop, fitted=False)
    sizes = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head": 128, "ffn": 14336, "vocab": 512}
    layer = Layer(sizes, bench.device)
    cos, sin = rotary_table(4096, 128, bench.device)
    x = torch.randn(2, 4096, 4096, device=bench.device, dtype=torch.bfloat16)
    with torch.no_grad():
        ask(bench, "layer forward", 0, lambda i: layer(x, cos, sin), fitted=False)


def power(bench):
    for part in (streams, backwards, optimizer, attention_and_layer):
        bench.attempt(part.__name__, lambda: part(bench))
        bench.free()
