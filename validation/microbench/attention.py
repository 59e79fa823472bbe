# SPDX-License-Identifier: Apache-2.0
# Asks how long the attention kernels that PyTorch ships take: forward, backward, and one query row.
"""Flash attention 2 and cuDNN through scaled_dot_product_attention, bf16, random data.

Backward is all kernels that autograd runs for one attention: the row sums, the main kernel, and
what grouped heads add. Decode is one query row per sequence with the heads of a group as its rows,
so that the cache is read once per key head, which is how a plain decode step calls it.
"""
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench import Bench, relative_error

warnings.filterwarnings("ignore")
BACKENDS = {"flash2": SDPBackend.FLASH_ATTENTION, "cudnn-attention": SDPBackend.CUDNN_ATTENTION}
CHECKED_SCORES = 1 << 26  # scores of the reference in fp32: 256 MiB


def training_cases(quick):
    """(batch, length, heads, kv heads, head size of q and k, of v, causal), what matters first."""
    cases = []
    if quick:
        return [(1, 2048, 32, 8, 128, 128, True), (2, 1024, 16, 16, 64, 64, True)]
    main = [(1, 1024), (1, 2048), (1, 4096), (1, 8192), (2, 2048), (2, 4096), (4, 2048), (8, 1024)]
    for b, s in main:
        cases.append((b, s, 32, 8, 128, 128, True))
    cases += [(8, 2048, 16, 16, 128, 128, True), (2, 4096, 16, 16, 128, 128, True),
              (1, 2048, 24, 24, 128, 128, True), (1, 4096, 10, 10, 128, 128, True),
              (1, 2048, 40, 40, 128, 128, True), (1, 4096, 40, 40, 128, 128, True),
              (1, 4096, 16, 4, 128, 128, True), (1, 4096, 8, 2, 128, 128, True),
              (1, 8192, 16, 2, 128, 128, True), (1, 8192, 8, 1, 128, 128, True),
              (1, 8192, 64, 8, 128, 128, True), (1, 16384, 32, 8, 128, 128, True),
              (4, 512, 32, 8, 128, 128, True), (1, 512, 32, 8, 128, 128, True),
              (16, 512, 32, 32, 128, 128, True), (32, 512, 32, 8, 128, 128, True)]
    # Head sizes other than 128: 192 with values of 128 is latent attention's.
    for qk, v in [(64, 64), (96, 96), (192, 128), (192, 192), (256, 256)]:
        cases += [(1, 4096, 16, 16, qk, v, True), (4, 2048, 16, 16, qk, v, True),
                  (1, 8192, 32, 8, qk, v, True), (2, 1024, 32, 32, qk, v, True)]
    cases += [(1, 2048, 32, 8, 128, 128, False), (1, 4096, 32, 8, 128, 128, False),
              (1, 8192, 16, 16, 128, 128, False), (2, 4096, 16, 16, 64, 64, False),
              (32, 512, 16, 16, 64, 64, False), (8, 512, 12, 12, 64, 64, False),
              (1, 4096, 32, 32, 80, 80, True), (1, 16384, 8, 1, 128, 128, True),
              (1, 32768, 8, 2, 128, 128, True), (1, 32768, 16, 16, 64, 64, True),
              (2, 8192, 32, 32, 128, 128, True), (4, 4096, 32, 8, 128, 128, True),
              (2, 16384, 16, 16, 128, 128, True), (16, 1024, 32, 8, 128, 128, True),
              (1, 1024, 4, 1, 128, 128, True), (1, 2048, 4, 4, 128, 128, True),
              (1, 2048, 8, 8, 64, 64, True), (1, 1024, 96, 96, 128, 128, True),
              (64, 512, 16, 16, 128, 128, True), (1, 32768, 32, 8, 128, 128, True),
              (3, 3072, 28, 4, 128, 128, True), (1, 6144, 40, 8, 128, 128, True),
              (2, 2048, 64, 8, 128, 128, True), (1, 4096, 64, 8, 128, 128, True),
              (1, 12288, 16, 8, 128, 128, True), (6, 1536, 20, 20, 128, 128, True),
              (1, 2048, 16, 2, 128, 128, True), (16, 2048, 32, 4, 128, 128, True),
              (4, 4096, 16, 16, 128, 128, False), (2, 2048, 32, 8, 128, 128, False),
              (16, 1024, 12, 12, 64, 64, True), (8, 2048, 25, 25, 64, 64, True),
              (2, 8192, 32, 8, 64, 64, True), (1, 16384, 32, 32, 64, 64, True),
              (64, 197, 12, 12, 64, 64, False), (8, 4096, 32, 32, 96, 96, True),
              (2, 2048, 128, 128, 192, 128, True), (1, 16384, 16, 16, 192, 128, True),
              (8, 1024, 16, 16, 256, 256, True), (1, 16384, 8, 8, 256, 256, True)]
    return cases


def decode_cases(quick):
    """(batch, heads, kv heads, head size, keys)."""
    if quick:
        return [(8, 32, 8, 128, 2049)]
    cases = [(b, 32, 8, 128, c + 1) for b in [1, 2, 8, 32, 128] for c in [1024, 4096]]
    cases += [(1, 32, 8, 128, 513), (1, 32, 8, 128, 2049), (32, 32, 8, 128, 2049),
              (256, 32, 8, 128, 1025), (1, 32, 8, 128, 16385), (1, 32, 8, 128, 65537),
              (8, 16, 2, 128, 2049), (8, 8, 2, 128, 2049), (64, 16, 2, 128, 4097),
              (32, 16, 4, 128, 2049), (1, 16, 2, 128, 8193), (8, 32, 8, 128, 16385),
              (8, 40, 40, 128, 2049), (64, 16, 16, 64, 1025), (1, 32, 32, 128, 4097),
              (16, 64, 8, 64, 2049), (4, 64, 8, 128, 8193), (64, 8, 1, 128, 2049),
              (4, 32, 8, 128, 3073), (16, 32, 8, 128, 6145), (64, 32, 8, 128, 1537),
              (16, 28, 4, 128, 2049), (2, 40, 8, 128, 12289), (128, 16, 2, 128, 2049),
              (4, 32, 32, 128, 1025), (32, 32, 32, 64, 513), (1, 64, 8, 128, 32769)]
    return cases


def operands(bench, b, s, h, kv, qk, v, count, grad):
    """`count` sets of q, k, v, laid out [batch, length, head, size] as projections leave them."""
    sets, at = [], 0
    for _ in range(count):
        one = []
        for heads, size in [(h, qk), (kv, qk), (kv, v)]:
            x = bench.random(b, s, heads, size, offset=at).transpose(1, 2)
            at += x.numel()
            one.append(x.detach().requires_grad_(grad))
        sets.append(one)
    return sets


def attend(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                          enable_gqa=q.shape[1] != k.shape[1])


def math_attention(q, k, v, causal):
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], device=q.device, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ v


def errors(q, k, v, causal, gradient):
    """Relative errors of the output and of the worst of three gradients, against fp32."""
    found = attend(q, k, v, causal)
    wide = [x.detach().float().requires_grad_() for x in (q, k, v)]
    exact = math_attention(*wide, causal)
    forward = relative_error(found, exact)
    if gradient is None:
        return forward, None
    ours = torch.autograd.grad(found, (q, k, v), gradient)
    theirs = torch.autograd.grad(exact, wide, gradient.float())
    return forward, max(relative_error(a, b) for a, b in zip(ours, theirs))


def shape_keys(case):
    b, s, h, kv, qk, v, causal = case
    return dict(input="bf16", batch=b, heads=h, kv_heads=kv, q_length=s, kv_length=s, qk_dim=qk,
                v_dim=v, causal=int(causal), window=0)


def checked(bench, what, error):
    if error is not None and not error < 0.03:
        bench.note(f"{what}: relative error {error:.3g}, expected below 0.03; left out")
        return False
    return True


def train_case(bench, library, case):
    b, s, h, kv, qk, v, causal = case
    nbytes = 2 * b * s * (h + kv) * (qk + v)
    with sdpa_kernel(BACKENDS[library]):
        n = bench.sets(nbytes)
        sets = operands(bench, b, s, h, kv, qk, v, n, True)
        gradient = torch.randn(b, s, h, v, device=bench.device, dtype=torch.bfloat16)
        gradient = gradient.transpose(1, 2)
        fwd_error = bwd_error = None
        if b * h * s * s <= CHECKED_SCORES:
            fwd_error, bwd_error = errors(*sets[0], causal, gradient)
        name = f"{library} {case}"
        with torch.no_grad():
            timing = bench.burst(lambda i: attend(*sets[i % n], causal), n)
        if checked(bench, name, fwd_error):
            bench.sample("attention-forward", library, "", timing, **shape_keys(case),
                         error=fwd_error)
        m = max(1, min(n, (n + 1) // 2))
        outputs = [attend(*one, causal) for one in sets[:m]]
        timing = bench.burst(lambda i: torch.autograd.grad(outputs[i % m], sets[i % m], gradient,
                                                           retain_graph=True), m)
        if checked(bench, name + " backward", bwd_error):
            bench.sample("attention-backward", library, "", timing, **shape_keys(case),
                         error=bwd_error)


def decode_case(bench, library, case):
    b, h, kv, d, keys = case
    n = bench.sets(4 * b * kv * keys * d)
    sets, at = [], 0
    for _ in range(n):
        one = [bench.random(b, kv, rows, d, offset=at + j * b * kv * keys * d)
               for j, rows in enumerate((keys, keys, h // kv))]
        sets.append((one[2], one[0], one[1]))
        at += 2 * b * kv * keys * d
    with torch.no_grad(), sdpa_kernel(BACKENDS[library]):
        error = None
        if b * h * keys <= 1 << 22:
            q, k, v = (x.float() for x in sets[0])
            exact = (q @ k.transpose(-1, -2) * d ** -0.5).softmax(-1) @ v
            error = relative_error(F.scaled_dot_product_attention(*sets[0]), exact)
        timing = bench.burst(lambda i: F.scaled_dot_product_attention(*sets[i % n]), n,
                             burst_ms=3.0)
    if checked(bench, f"{library} decode {case}", error):
        bench.sample("attention-decode", library, "groups-as-rows", timing, input="bf16", batch=b,
                     heads=h, kv_heads=kv, q_length=1, kv_length=keys, qk_dim=d, v_dim=d, causal=0,
                     window=0, error=error)


def default_backends(bench):
    """Which backend PyTorch takes by itself, in training and for a decode step."""
    names = {0: "math", 1: "flash2", 2: "efficient", 3: "cudnn-attention"}
    for variant, q_heads, rows, keys, causal in [
            ("attention-default-training", 32, 2048, 2048, True),
            ("attention-default-decode", 8, 4, 2049, False)]:
        q, k, v = (torch.randn(1, heads, n, 128, device=bench.device, dtype=torch.bfloat16)
                   for heads, n in ((q_heads, rows), (8, keys), (8, keys)))
        choice = torch._fused_sdp_choice(q, k, v, None, 0.0, causal, scale=None,
                                         enable_gqa=q_heads != 8)
        bench.software(variant, int(choice), "backend", name=names.get(int(choice), "other"))


def main():
    bench = Bench("attention", 110)
    torch.backends.cuda.matmul.allow_tf32 = False
    bench.conditions()
    bench.attempt("default backend", lambda: default_backends(bench))
    cases, decodes = training_cases(bench.quick), decode_cases(bench.quick)
    bench.random(1 << 29)
    runs = []
    for i, case in enumerate(cases):
        runs.append((train_case, "cudnn-attention", case))
        runs.append((train_case, "flash2", case))
        # Decode samples are spread between: a run cut short by its budget has some of each.
        for one in decodes[i * len(decodes) // len(cases):(i + 1) * len(decodes) // len(cases)]:
            runs.append((decode_case, "flash2", one))
            runs.append((decode_case, "cudnn-attention", one))
    for work, library, case in runs:
        bench.attempt(f"{work.__name__} {library} {case}", lambda: work(bench, library, case))
    bench.close()


if __name__ == "__main__":
    main()
