#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Asks how long indexed attention takes: FlashMLA's sparse kernels, an indexer's scores and choice.
"""The kernels that vLLM runs for DeepSeek-V3.2 and GLM-5 on Hopper, from its own wheel: FlashMLA
over chosen latents (16-bit latents for prompts, 8-bit ones with scales for decodes and, on ranks of
few heads, for prompts too), DeepGEMM's scores of an indexer, vLLM's choice among them. Needs vLLM.
"""
import importlib.metadata

import torch

from bench import Bench, relative_error

WIDTH, VALUES, TOPK = 576, 512, 2048


def indices(rows, keys, chosen, topk=TOPK):
    """As many valid ones a row as are chosen, in no order; the rest are -1."""
    out = torch.full((rows, topk), -1, device="cuda", dtype=torch.int32)
    for start in range(0, rows, 256):  # a permutation for each few rows
        pick = torch.randperm(keys, device="cuda")[:chosen].int()
        out[start:start + 256, :chosen] = pick
    return out


def exact_of(q, kv, index, scale):
    index = index[index >= 0].long()
    k = kv[index].float()
    return (q.float() @ k.T * scale).softmax(-1) @ k[:, :VALUES]


def attention(bench, timing, form, heads, rows, keys, chosen, topk, error=None):
    """As the model has it: each query sees as many keys as an indexer may choose."""
    bench.sample("attention-forward", "flashmla", f"{form} latents", timing, input=form, batch=1,
                 heads=heads, kv_heads=1, q_length=rows, kv_length=keys + rows, qk_dim=WIDTH,
                 v_dim=VALUES, causal=1, window=topk, chosen=chosen, error=error)


def index(bench, what, timing, **shape):
    bench.software(what, timing["time_us"], "us", timing["low_us"], timing["high_us"], **shape)


def prefill_case(bench, sparse, heads, rows, keys, chosen, topk=TOPK):
    q = bench.random(rows, heads, WIDTH)
    kv = bench.random(keys, 1, WIDTH, offset=q.numel())
    index = indices(rows, keys, chosen, topk).unsqueeze(1)
    scale = WIDTH ** -0.5
    found = sparse(q, kv, index, scale)[0]
    error = relative_error(found[0], exact_of(q[0], kv[:, 0], index[0, 0], scale))
    timing = bench.burst(lambda i: sparse(q, kv, index, scale), 1)
    attention(bench, timing, "bf16", heads, rows, keys, chosen, topk, error)


def decode_case(bench, mla, heads, batch, rows, keys, chosen):
    q = bench.random(batch, rows, heads, WIDTH)
    blocks = (keys + 63) // 64
    cache = torch.randint(0, 60, (blocks, 64, 1, 656), device="cuda", dtype=torch.uint8)
    cache[..., 512:528] = torch.ones(4, device="cuda").view(torch.uint8)
    cache[..., 528:] = torch.randn(blocks, 64, 1, 64, device="cuda").bfloat16().view(torch.uint8)
    index = indices(batch * rows, keys, chosen).view(batch, rows, TOPK)
    schedule = mla.get_mla_metadata()[0]

    def call(_):
        return mla.flash_mla_with_kvcache(
            q, cache.view(torch.float8_e4m3fn), None, None, VALUES, schedule, is_fp8_kvcache=True,
            indices=index, softmax_scale=WIDTH ** -0.5)

    timing = bench.burst(call, 1)
    if batch == 1 and rows >= 256:  # a prompt, as vLLM has it on ranks of few heads
        return attention(bench, timing, "fp8", heads, rows, keys, chosen, TOPK)
    bench.sample("attention-decode", "flashmla", "fp8 latents", timing, input="fp8", batch=batch,
                 heads=heads, kv_heads=1, q_length=rows, kv_length=TOPK, qk_dim=WIDTH,
                 v_dim=VALUES, causal=0, window=0, chosen=chosen)


def score_case(bench, gemm, heads, rows, keys):
    """A prompt's last `rows` queries over `keys` keys, each over those before it."""
    dim = 128
    q = bench.random(rows, heads, dim).to(torch.float8_e4m3fn)
    k = bench.random(keys, dim).to(torch.float8_e4m3fn)
    scales = torch.rand(keys, device="cuda")
    weights = torch.randn(rows, heads, device="cuda")
    first = torch.zeros(rows, device="cuda", dtype=torch.int32)
    last = (torch.arange(rows, device="cuda") + keys - rows + 1).int()
    timing = bench.burst(lambda i: gemm.fp8_fp4_mqa_logits(
        (q, None), (k, scales), weights, first, last, clean_logits=False), 1)
    index(bench, "scores of a prompt", timing, heads=heads, rows=rows, keys=keys)
    choose = torch.ops._C.top_k_per_row_prefill
    logits = torch.randn(rows, keys, device="cuda")
    out = torch.empty(rows, TOPK, device="cuda", dtype=torch.int32)
    timing = bench.burst(lambda i: choose(logits, first, last, out, rows, logits.stride(0),
                                          logits.stride(1), TOPK), 1)
    index(bench, "choice of a prompt", timing, rows=rows, keys=keys, topk=TOPK)


def paged_case(bench, gemm, heads, batch, keys):
    dim = 128
    q = bench.random(batch, 1, heads, dim).to(torch.float8_e4m3fn)
    blocks = (keys + 63) // 64
    cache = torch.randint(0, 60, (batch * blocks, 64, 1, dim + 4), device="cuda",
                          dtype=torch.uint8)
    cache.view(-1, 64 * (dim + 4))[:, 64 * dim:] = torch.ones(64, device="cuda").view(torch.uint8)
    weights = torch.randn(batch, heads, device="cuda")
    lengths = torch.full((batch, 1), keys, device="cuda", dtype=torch.int32)
    table = torch.arange(batch * blocks, device="cuda", dtype=torch.int32).view(batch, blocks)
    plan = gemm.get_paged_mqa_logits_metadata(lengths, 64, gemm.get_num_sms())
    timing = bench.burst(lambda i: gemm.fp8_fp4_paged_mqa_logits(
        (q, None), cache, weights, lengths, table, plan, blocks * 64, clean_logits=False), 1)
    index(bench, "scores of decodes", timing, heads=heads, rows=batch, keys=keys)
    logits = torch.randn(batch, blocks * 64, device="cuda")
    out = torch.empty(batch, TOPK, device="cuda", dtype=torch.int32)
    space = torch.empty(1 << 20, device="cuda", dtype=torch.uint8)
    timing = bench.burst(lambda i: torch.ops._C.persistent_topk(logits, lengths, out, space, TOPK,
                                                                keys), 1)
    index(bench, "choice of decodes", timing, rows=batch, keys=keys, topk=TOPK)


def main():
    bench = Bench("sparse-attention", 240)
    import vllm.third_party.flashmla.flash_mla_interface as mla
    import vllm._C  # noqa: F401  (the choice)
    bench.conditions(vllm=importlib.metadata.version("vllm"))
    sparse = mla.flash_mla_sparse_fwd
    for heads in (64, 128):
        for rows in (64, 256, 1024, 2048, 8192):
            for keys, chosen in [(65536, 2048), (2048, 512)] if rows > 64 else [(65536, 2048)]:
                bench.attempt(f"prefill {heads} {rows}", lambda: prefill_case(
                    bench, sparse, heads, rows, keys, chosen))
    bench.attempt("prefill of 512", lambda: prefill_case(bench, sparse, 64, 2048, 65536, 512, 512))
    for heads in (64, 128):
        for batch, rows in [(1, 8192), (1, 2048), (1, 256), (1, 1), (8, 1), (64, 1), (128, 1),
                            (256, 1), (64, 2), (8, 2), (1, 1024), (16, 1), (32, 1)]:
            for chosen in (2048, 512) if rows * batch in (1, 64, 2048) else (2048,):
                bench.attempt(f"decode {heads} {batch} {rows}", lambda: decode_case(
                    bench, mla, heads, batch, rows, 65536, chosen))
    import vllm.third_party.deep_gemm as gemm
    for heads in (32, 64):
        for rows, keys in [(1024, 1024), (2048, 2048), (4096, 4096), (8192, 8192), (8192, 16384),
                           (8192, 32768), (8192, 65536), (2048, 16384), (256, 16384)]:
            bench.attempt(f"scores {heads} {rows} {keys}",
                          lambda: score_case(bench, gemm, heads, rows, keys))
        for batch, keys in [(1, 1024), (1, 8192), (1, 65536), (8, 8192), (64, 2048), (64, 8192),
                            (64, 32768), (256, 8192), (128, 4096)]:
            bench.attempt(f"paged scores {heads} {batch} {keys}",
                          lambda: paged_case(bench, gemm, heads, batch, keys))
    bench.close()


if __name__ == "__main__":
    main()
