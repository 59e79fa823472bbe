# SPDX-License-Identifier: Apache-2.0
# Asks how long whole decode steps of a dense model take in one CUDA graph.
"""Llama 3.1 8B's shapes with random weights, bf16: products, attention through enable_gqa (which
splits keys), compiled norms and activations, the head; no scheduler, no sampling. One line a batch
and context: value in us a step.
"""
import torch
import torch.nn.functional as F

from bench import Bench
from llama_layer import rms_norm, swiglu

LAYERS, HIDDEN, HEADS, KV_HEADS, SIZE, FFN, VOCAB = 32, 4096, 32, 8, 128, 14336, 128256
CASES = [(1, 4096), (8, 4096), (64, 4096), (1, 32768), (8, 32768), (64, 1024), (1, 1024)]


def weights(bench):
    def make(*shape):
        return 0.02 * torch.randn(*shape, device=bench.device, dtype=torch.bfloat16)
    layer = [(make((HEADS + 2 * KV_HEADS) * SIZE, HIDDEN), make(HIDDEN, HEADS * SIZE),
              make(2 * FFN, HIDDEN), make(HIDDEN, FFN)) for _ in range(LAYERS)]
    return layer, make(VOCAB, HIDDEN), torch.ones(HIDDEN, device=bench.device,
                                                  dtype=torch.bfloat16)


def one_step(x, layers, head, scale, caches, position, norm, gate):
    batch = x.shape[0]
    for (qkv, out, up, down), (keys, values) in zip(layers, caches):
        y = norm(x, scale) @ qkv.t()
        q, k, v = y.split([HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE], -1)
        keys[:, :, position] = k.view(batch, KV_HEADS, SIZE)
        values[:, :, position] = v.view(batch, KV_HEADS, SIZE)
        a = F.scaled_dot_product_attention(q.view(batch, HEADS, 1, SIZE), keys, values,
                                           enable_gqa=True)
        x = x + a.reshape(batch, HEADS * SIZE) @ out.t()
        x = x + gate(norm(x, scale) @ up.t()) @ down.t()
    return norm(x, scale) @ head.t()


def step_case(bench, model, batch, context, norm, gate):
    layers, head, scale = model
    caches = [tuple(torch.randn(batch, KV_HEADS, context + 1, SIZE, device=bench.device,
                                dtype=torch.bfloat16) for _ in range(2)) for _ in range(LAYERS)]
    x = torch.randn(batch, HIDDEN, device=bench.device, dtype=torch.bfloat16)

    def work(_):
        return one_step(x, layers, head, scale, caches, context, norm, gate)
    with torch.no_grad():
        timing = bench.burst(work, 1, burst_ms=40.0)
    bench.software("decode-step", timing["time_us"], "us", low=timing["low_us"],
                   high=timing["high_us"], batch=batch, context=context, layers=LAYERS)


def main():
    bench = Bench("decode-step", 120)
    bench.conditions()
    norm = torch.compile(rms_norm, dynamic=False)
    gate = torch.compile(swiglu, dynamic=False)
    model = weights(bench)
    for batch, context in CASES:
        bench.attempt(f"batch {batch} context {context}",
                      lambda: step_case(bench, model, batch, context, norm, gate))
        bench.free()
    bench.close()


if __name__ == "__main__":
    main()
