# SPDX-License-Identifier: Apache-2.0
# Asks what the parts of a Mamba-2 layer take, forward and backward: the causal convolution and the scan in chunks.
"""The convolution runs over each channel alone, four tokens wide, with SiLU: `depthwise` is PyTorch's
conv1d over [batch, channel, token]; over [batch, token, channel] run `triton`, two kernels written here,
and `inductor`, four shifted products, compiled. The scan is that of state-space duality: `products` is
written here with batched matrix products in BF16 (eager), `inductor` the same compiled, `mamba-ssm` that
package's Triton kernels where it can be imported. The inputs come as they leave the convolution; no gate,
no norm. `mixer` is all between the two projections, as Megatron-Core's mixer calls it: mamba_ssm's
mamba_split_conv1d_scan_combined with a gated norm, over causal_conv1d, chunks of 128.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from bench import relative_error
from training_bench import gradients, leaf

# heads, head dim, state, groups of B and C
SHAPES = {
    "mamba2-2.7b": (80, 64, 128, 1),
    "nemotron-h-8b": (128, 64, 128, 8),
    "nemotron-3-nano": (64, 64, 128, 8),
    "nemotron-h-56b-tp8": (32, 64, 256, 1),
}
TOKENS = [(1, 4096), (1, 8192), (4, 4096), (1, 2048)]


def conv_depthwise(x, w, bias):
    """x: [batch, channel, token]."""
    return F.silu(F.conv1d(x, w[:, None], bias, padding=3, groups=x.shape[1])[..., : x.shape[2]])


def conv_shifted(x, w, bias):
    """x: [batch, token, channel]."""
    padded = F.pad(x, (0, 0, 3, 0))
    wide = sum(padded[:, i : i + x.shape[1]].float() * w[:, i].float() for i in range(4))
    return F.silu(wide + bias.float()).to(x.dtype)


@triton.jit
def before_silu(x, w, bias, at, token, channel, tokens, channels):
    total = tl.load(bias + channel).to(tl.float32)[None, :]
    for i in tl.static_range(4):
        source = token - 3 + i
        inside = ((source >= 0) & (source < tokens))[:, None]
        value = tl.load(x + at + source[:, None] * channels + channel[None, :], mask=inside, other=0.0)
        total += value.to(tl.float32) * tl.load(w + channel * 4 + i).to(tl.float32)[None, :]
    return total


@triton.jit
def conv_forward(x, w, bias, y, tokens, channels, BT: tl.constexpr, BC: tl.constexpr):
    token = tl.program_id(0) * BT + tl.arange(0, BT)
    channel = tl.program_id(1) * BC + tl.arange(0, BC)
    at = tl.program_id(2).to(tl.int64) * tokens * channels
    total = before_silu(x, w, bias, at, token, channel, tokens, channels)
    inside = (token < tokens)[:, None]
    tl.store(
        y + at + token[:, None] * channels + channel[None, :],
        (total * tl.sigmoid(total)).to(tl.bfloat16),
        mask=inside,
    )


@triton.jit
def conv_backward(x, w, bias, dy, dx, dw, dbias, tokens, channels, BT: tl.constexpr, BC: tl.constexpr):
    token = tl.program_id(0) * BT + tl.arange(0, BT)
    channel = tl.program_id(1) * BC + tl.arange(0, BC)
    at = tl.program_id(2).to(tl.int64) * tokens * channels
    gradient = tl.zeros((BT, BC), dtype=tl.float32)
    for j in tl.static_range(4):  # of the four outputs that a token reaches
        total = before_silu(x, w, bias, at, token + j, channel, tokens, channels)
        gate = tl.sigmoid(total)
        inside = (token + j < tokens)[:, None]
        outer = tl.load(dy + at + (token + j)[:, None] * channels + channel[None, :], mask=inside, other=0.0)
        inner = outer.to(tl.float32) * gate * (1 + total * (1 - gate))
        gradient += inner * tl.load(w + channel * 4 + 3 - j).to(tl.float32)[None, :]
        if j == 0:
            tl.atomic_add(dbias + channel, tl.sum(inner, 0))
            for i in tl.static_range(4):
                source = token - 3 + i
                there = ((source >= 0) & (source < tokens))[:, None]
                value = tl.load(x + at + source[:, None] * channels + channel[None, :], mask=there, other=0.0)
                tl.atomic_add(dw + channel * 4 + i, tl.sum(inner * value.to(tl.float32), 0))
    tl.store(
        dx + at + token[:, None] * channels + channel[None, :],
        gradient.to(tl.bfloat16),
        mask=(token < tokens)[:, None],
    )


class TritonConv(torch.autograd.Function):
    """x: [batch, token, channel]; the gradients of w and bias are summed in FP32."""

    @staticmethod
    def forward(ctx, x, w, bias):
        ctx.save_for_backward(x, w, bias)
        y, (batch, tokens, channels) = torch.empty_like(x), x.shape
        conv_forward[(triton.cdiv(tokens, 64), channels // 64, batch)](
            x, w, bias, y, tokens, channels, BT=64, BC=64
        )
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, bias = ctx.saved_tensors
        dx, (batch, tokens, channels) = torch.empty_like(x), x.shape
        dw, dbias = torch.zeros_like(w, dtype=torch.float32), torch.zeros_like(bias, dtype=torch.float32)
        conv_backward[(triton.cdiv(tokens, 64), channels // 64, batch)](
            x, w, bias, dy, dx, dw, dbias, tokens, channels, BT=64, BC=64
        )
        return dx, dw.to(w.dtype), dbias.to(bias.dtype)


def check_conv_gradients(function, x, w, bias):
    """Of the first 64 channels of a short sequence, against FP32."""
    small = [
        leaf(t.detach()[:1, :256, :64].contiguous() if t.dim() == 3 else t.detach()[:64].contiguous())
        for t in (x, w, bias)
    ]
    wide = [leaf(t.float()) for t in small]
    grad = torch.randn(1, 256, 64, device=x.device).to(x.dtype)
    found = torch.autograd.grad(function(*small), small, grad)
    exact = torch.autograd.grad(conv_shifted(*wide), wide, grad.float())
    error = max(relative_error(a, b) for a, b in zip(found, exact))
    assert error < 0.01, f"relative error of a gradient {error}"


def conv_case(bench, library, name, batch, length):
    torch._dynamo.reset()
    heads, dim, state, groups = SHAPES[name]
    channels = heads * dim + 2 * groups * state
    n = bench.sets(4 * batch * length * channels, most=3)
    xs = [leaf(bench.random(batch, length, channels, offset=i * batch * length * channels)) for i in range(n)]
    w, bias = leaf(bench.random(channels, 4) * 0.3), leaf(bench.random(channels))
    if library == "depthwise":
        sets = [(leaf(x.transpose(1, 2).contiguous()), w, bias) for x in xs]
        function = conv_depthwise
    else:
        sets = [(x, w, bias) for x in xs]
        function = TritonConv.apply if library == "triton" else torch.compile(conv_shifted, dynamic=False)
    if library == "triton":
        check_conv_gradients(function, *sets[0])
    outputs = [function(*one) for one in sets]
    exact = conv_depthwise(xs[0][:1].detach().transpose(1, 2).float(), w.float(), bias.float()).transpose(
        1, 2
    )
    found = outputs[0][:1].transpose(1, 2) if library == "depthwise" else outputs[0][:1]
    error = relative_error(found.detach(), exact.detach())
    assert error < 0.01, f"relative error {error}"
    keys = dict(
        input="bf16",
        model=name,
        batch=batch,
        length=length,
        channels=channels,
        count=batch * length * channels,
        error=error,
    )
    grads = [torch.randn_like(outputs[0])]
    bench.measure(
        "conv1d-forward", library, "silu", lambda i: function(*sets[i % n]), n, compiled=True, **keys
    )
    bench.measure(
        "conv1d-backward", library, "silu", gradients(outputs, sets, grads), n, compiled=True, **keys
    )


def scan(x, dt, a, b, c, chunk):
    """x [batch, token, head, dim]; dt [batch, token, head] and a [head] in FP32; b, c [batch, token, group, state]."""
    batch, length, heads, dim = x.shape
    groups, state, count = b.shape[2], b.shape[3], length // chunk
    each = heads // groups
    x = x.view(batch, count, chunk, groups, each, dim)
    b, c = (t.view(batch, count, chunk, groups, state) for t in (b, c))
    dt = dt.view(batch, count, chunk, groups, each)
    # A running sum as a product: Inductor 2.11 cannot compile a cumsum over 256 here.
    below = torch.ones(chunk, chunk, device=x.device).tril()
    sums = torch.einsum("ls,zcsgh->zclgh", below, dt * a.view(groups, each))
    rows = sums.permute(0, 1, 3, 4, 2)  # [batch, chunk, group, head, token]
    decay = (rows[..., :, None] - rows[..., None, :]).tril().exp().tril()
    scores = torch.einsum("zclgn,zcsgn->zcgls", c, b)
    mixed = (scores[:, :, :, None] * decay * dt.permute(0, 1, 3, 4, 2)[..., None, :]).to(x.dtype)
    inside = torch.einsum("zcghls,zcsghp->zclghp", mixed, x)
    weight = ((sums[:, :, -1:] - sums).exp() * dt).to(x.dtype)
    states = torch.einsum("zclgn,zclghp->zcghpn", b, x * weight[..., None]).float()
    last, before, carried = rows[..., -1].exp(), [], torch.zeros_like(states[:, 0])
    for i in range(count):
        before.append(carried)
        carried = carried * last[:, i][..., None, None] + states[:, i]
    entering = torch.stack(before, 1).to(x.dtype)
    outside = torch.einsum("zclgn,zcghpn->zclghp", c, entering) * sums.exp()[..., None].to(x.dtype)
    return (inside + outside).reshape(batch, length, heads, dim)


def scan_reference(x, dt, a, b, c):
    """Token by token in FP32."""
    batch, length, heads, dim = x.shape
    each = heads // b.shape[2]
    b, c = (t.float().repeat_interleave(each, 2) for t in (b, c))
    state = torch.zeros(batch, heads, dim, b.shape[3], device=x.device)
    out = []
    for t in range(length):
        state = state * (dt[:, t] * a).exp()[..., None, None]
        state = state + (dt[:, t, :, None] * x[:, t].float())[..., None] * b[:, t, :, None]
        out.append((state * c[:, t, :, None]).sum(-1))
    return torch.stack(out, 1)


def scan_operands(bench, name, batch, length, i=0):
    heads, dim, state, groups = SHAPES[name]
    x = leaf(bench.random(batch, length, heads, dim, offset=64 * i))
    dt = leaf(F.softplus(torch.randn(batch, length, heads, device=bench.device) - 3))
    a = leaf(-torch.rand(heads, device=bench.device) * 4 - 0.5)
    b, c = (
        leaf(bench.random(batch, length, groups, state, offset=(j << 24) + 64 * i) * state**-0.25)
        for j in (1, 2)
    )
    return x, dt, a, b, c


def scan_function(library):
    if library == "mamba-ssm":
        from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

        return mamba_chunk_scan_combined
    return torch.compile(scan, dynamic=False) if library == "inductor" else scan


def scan_case(bench, library, name, batch, length, chunk, checked):
    torch._dynamo.reset()
    function = scan_function(library)
    heads, dim, state, groups = SHAPES[name]
    sets = [scan_operands(bench, name, batch, length, i) for i in range(2)]
    outputs = [
        function(*one, chunk) for one in sets
    ]  # kernels are chosen at this size, before the small check
    if not bench.once and (library, chunk) not in checked:
        small = scan_operands(bench, name, 1, 2 * chunk)
        exact = scan_reference(*(x.detach() for x in small))
        checked[library, chunk] = relative_error(function(*small, chunk).detach(), exact)
        assert checked[library, chunk] < 0.02, f"relative error {checked[library, chunk]}"
    keys = dict(
        input="bf16",
        model=name,
        batch=batch,
        length=length,
        tokens=batch * length,
        chunk=chunk,
        heads=heads,
        head_dim=dim,
        state=state,
        groups=groups,
        error=checked.get((library, chunk)),
    )
    grads = [torch.randn_like(outputs[0])]
    bench.measure(
        "scan-forward",
        library,
        "",
        lambda i: function(*sets[i % 2], chunk),
        2,
        compiled=True,
        in_graph=False,
        **keys,
    )
    bench.measure(
        "scan-backward",
        library,
        "",
        gradients(outputs, sets, grads),
        2,
        compiled=True,
        in_graph=False,
        **keys,
    )


def causal_conv_case(bench, name, batch, length):
    """causal_conv1d with SiLU on rows of a wider tensor, channels beside each other, as the mixer calls it."""
    from causal_conv1d import causal_conv1d_fn

    heads, dim, state, groups = SHAPES[name]
    channels = heads * dim + 2 * groups * state
    wide = channels + heads * dim + heads
    sets = [
        (
            leaf(bench.random(batch, length, wide, offset=i * batch * length * wide)),
            leaf(bench.random(channels, 4) * 0.3),
            leaf(bench.random(channels)),
        )
        for i in range(2)
    ]

    def function(x, w, bias):
        rows = x[..., heads * dim : heads * dim + channels].transpose(1, 2)
        return causal_conv1d_fn(rows, w, bias, activation="silu")

    outputs = [function(*one) for one in sets]
    exact = conv_depthwise(
        sets[0][0][:1, :, heads * dim : heads * dim + channels].detach().transpose(1, 2).float(),
        sets[0][1].float(),
        sets[0][2].float(),
    )
    error = relative_error(outputs[0][:1].detach(), exact.detach())
    assert error < 0.01, f"relative error {error}"
    keys = dict(input="bf16", model=name, batch=batch, length=length, channels=channels, error=error)
    grads = [torch.randn_like(outputs[0])]
    bench.measure("conv1d-forward", "causal-conv1d", "silu", lambda i: function(*sets[i % 2]), 2, in_graph=False, **keys)
    bench.measure(
        "conv1d-backward", "causal-conv1d", "silu", gradients(outputs, sets, grads), 2, in_graph=False, **keys
    )


def mixer_case(bench, name, batch, length):
    from mamba_ssm.ops.triton.ssd_combined import mamba_split_conv1d_scan_combined

    heads, dim, state, groups = SHAPES[name]
    inner = heads * dim
    channels = inner + 2 * groups * state
    wide = inner + channels + heads

    def operands(i):
        return (
            leaf(bench.random(batch, length, wide, offset=i * batch * length * wide)),
            leaf(bench.random(channels, 4) * 0.3),
            leaf(bench.random(channels)),
            leaf(torch.rand(heads, device=bench.device) - 3),
            leaf(-torch.rand(heads, device=bench.device) * 4 - 0.5),
            leaf(torch.ones(heads, device=bench.device)),
            leaf(bench.random(inner)),
        )

    def function(x, w, bias, dt_bias, a, d, norm):
        return mamba_split_conv1d_scan_combined(
            x, w, bias, dt_bias, a, D=d, chunk_size=128, activation="silu", rmsnorm_weight=norm,
            headdim=dim, ngroups=groups, norm_before_gate=False,
        )

    sets = [operands(i) for i in range(2)]
    outputs = [function(*one) for one in sets]
    keys = dict(
        input="bf16", model=name, batch=batch, length=length, tokens=batch * length, chunk=128,
        heads=heads, head_dim=dim, state=state, groups=groups,
    )
    grads = [torch.randn_like(outputs[0])]
    bench.measure("mixer-forward", "mamba-ssm", "", lambda i: function(*sets[i % 2]), 2, in_graph=False, **keys)
    bench.measure(
        "mixer-backward", "mamba-ssm", "", gradients(outputs, sets, grads), 2, in_graph=False, **keys
    )


def mixers(bench):
    """Needs mamba_ssm and causal_conv1d."""
    if bench.once:
        return
    bench.random(1 << 29)
    for batch, length in TOKENS[:1] if bench.quick else ((1, 8192), (1, 4096), (2, 8192)):
        for name in list(SHAPES)[1:2] if bench.quick else list(SHAPES)[1:]:
            for run in (mixer_case, causal_conv_case):
                what = f"{run.__name__} {name} {batch} {length}"
                bench.case(what, lambda: run(bench, name, batch, length))


def mamba(bench):
    torch._functorch.config.donated_buffer = False  # a backward runs many times
    bench.random(1 << 29)
    checked, runs = {}, []
    for batch, length in TOKENS[:1] if bench.quick else TOKENS:
        for name in list(SHAPES)[:1] if bench.quick else SHAPES:
            runs += [(scan_case, "mamba-ssm", name, batch, length, chunk, checked) for chunk in (256, 128)]
            runs += [
                (conv_case, "triton", name, batch, length),
                (conv_case, "depthwise", name, batch, length),
            ]
    for name in (
        list(SHAPES)[:1] if bench.quick else SHAPES
    ):  # these compile for ten seconds each, or are slow
        runs += [
            (conv_case, "inductor", name, *TOKENS[0]),
            (scan_case, "inductor", name, *TOKENS[0], 256, checked),
            (scan_case, "products", name, *TOKENS[0], 256, checked),
            (scan_case, "products", name, *TOKENS[0], 128, checked),
        ]
    runs.append((scan_case, "inductor", list(SHAPES)[0], *TOKENS[0], 128, checked))
    for run, *words in runs:
        if bench.once and words[0] != "inductor":
            continue
        bench.case(
            " ".join(str(word) for word in (run.__name__, *words[:5]) if word is not checked),
            lambda: run(bench, *words),
        )
    torch._functorch.config.donated_buffer = True
