# SPDX-License-Identifier: Apache-2.0
# Asks how long one decode step's attention takes in the calls that split keys over processors.
"""One query row a sequence through scaled_dot_product_attention with enable_gqa, bf16, random data:
each backend that takes the call, and the one that PyTorch takes by itself. attention.py times the
same step with the heads of a group as rows of one query, which splits no keys in cuDNN.
"""
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import checked
from bench import Bench, relative_error

warnings.filterwarnings("ignore")
BACKENDS = {"flash2": [SDPBackend.FLASH_ATTENTION],
            "cudnn-attention": [SDPBackend.CUDNN_ATTENTION],
            "default": [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION,
                        SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]}
LARGEST_CACHE = 24e9  # bytes of one call
CHECKED_SCORES = 1 << 24


def grouped_cases(quick):
    """(batch, heads, kv heads, size of q and k, of v, keys), what matters first."""
    if quick:
        return [(1, 32, 8, 128, 128, 4097), (8, 32, 8, 128, 128, 4097)]
    cases = []
    contexts = [1024, 4096, 32768, 8192, 2048, 16384, 65536, 131072]
    for context in contexts:
        for batch in [1, 8, 64, 256, 2, 32, 4, 16, 128]:
            cases.append((batch, 32, 8, 128, 128, context + 1))
            if batch in (1, 8, 64):
                cases.append((batch, 8, 1, 128, 128, context + 1))
                cases.append((batch, 64, 8, 128, 128, context + 1))
            if batch in (1, 16) and context in (1024, 8192, 32768):
                cases += [(batch, 32, 32, 128, 128, context + 1),
                          (batch, 64, 8, 64, 64, context + 1),
                          (batch, 16, 2, 256, 256, context + 1)]
    return cases


def latent_cases(quick):
    """Absorbed latent attention: one key of 512 + 64, whose first 512 are the value."""
    heads = [16] if quick else [16, 32, 64, 128]
    return [(b, h, 1, 576, 512, keys + 1) for h in heads for b in (1, 16, 64)
            for keys in ([4096] if quick else [1024, 4096, 32768])]


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])


def exact_of(q, k, v):
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.float() for x in (q, k, v))
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    return (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1) @ v


def operands(bench, case):
    b, h, kv, qk, v, keys = case
    latent = kv == 1 and v < qk
    width = qk if latent else qk + v
    count = bench.sets(2 * b * kv * keys * width)
    sets, at = [], 0
    for _ in range(count):
        k = bench.random(b, kv, keys, qk, offset=at)
        at += k.numel()
        if latent:
            values = k[..., :v]
        else:
            values = bench.random(b, kv, keys, v, offset=at)
            at += values.numel()
        q = bench.random(b, h, 1, qk, offset=at)
        at += q.numel()
        sets.append((q, k, values))
    return sets


def decode_case(bench, library, case):
    b, h, kv, qk, v, keys = case
    sets = operands(bench, case)
    n = len(sets)
    with torch.no_grad(), sdpa_kernel(BACKENDS[library], set_priority=library == "default"):
        error = None
        if b * h * keys <= CHECKED_SCORES:
            error = relative_error(attend(*sets[0]), exact_of(*sets[0]))
        timing = bench.burst(lambda i: attend(*sets[i % n]), n, burst_ms=3.0)
    if checked(bench, f"{library} decode {case}", error):
        bench.sample("attention-decode", library, "grouped-heads", timing, input="bf16", batch=b,
                     heads=h, kv_heads=kv, q_length=1, kv_length=keys, qk_dim=qk, v_dim=v,
                     causal=0, window=0, error=error)


def kernel_names(bench, library, case):
    """Which kernels one call runs, on standard error: a reader wants to know what was timed."""
    from torch.profiler import ProfilerActivity, profile
    one = operands(bench, case)[0]
    with torch.no_grad(), sdpa_kernel(BACKENDS[library], set_priority=library == "default"):
        attend(*one)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            attend(*one)
            torch.cuda.synchronize()
    for event in seen.key_averages():
        if event.self_device_time_total > 0:
            bench.note(f"{library} {case}: {event.count} x {event.key[:110]}"
                       f" {event.self_device_time_total:.1f} us")


def main():
    bench = Bench("split-decode", 170)
    bench.conditions()
    bench.random(1 << 29)
    for library in BACKENDS:
        for case in [(1, 32, 8, 128, 128, 8193), (1, 16, 1, 576, 512, 4097)]:
            bench.attempt(f"kernels {library} {case}", lambda: kernel_names(bench, library, case))
    refused = set()
    for case in grouped_cases(bench.quick) + latent_cases(bench.quick):
        b, h, kv, qk, v, keys = case
        if 2 * b * kv * keys * (qk + v) > LARGEST_CACHE:
            continue
        for library in ("flash2", "cudnn-attention") if qk <= 256 else BACKENDS:
            if (library, qk) in refused:
                continue
            done = []
            bench.attempt(f"{library} {case}",
                          lambda: done.append(decode_case(bench, library, case)))
            if not done and qk > 256:
                refused.add((library, qk))
    bench.close()


if __name__ == "__main__":
    main()
