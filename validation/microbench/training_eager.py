# SPDX-License-Identifier: Apache-2.0
# Times the kernels of layers that run operation by operation, by what they are.
"""Forward and backward of four layers of small models in plain PyTorch, in bf16, as the profiler sees their
kernels; a layer's share is written, medians over passes. What is neither product nor attention is `other`.
"""

import torch

from framework_steps import sums_of, trace
from llama_layer import rotary_table
from training_models import MODELS, Block

LAYERS, PASSES = 4, 5
# model, sequences, tokens of each
CASES = [("opt-1.3b", 4, 2048), ("opt-1.3b", 1, 2048), ("gpt2-xl", 6, 1024), ("gpt-1.3b", 2, 2048),
         ("llama-3.2-1b", 2, 4096), ("llama-3.2-1b", 1, 2048), ("llama-3.2-3b", 1, 4096), ("qwen3-1.7b", 2, 2048),
         ("phi-3-mini", 2, 2048), ("llama-3.1-8b", 1, 4096)]  # fmt: skip


def layers(bench, name, batch, length):
    c = MODELS[name]
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(bench.device):
        blocks = [Block(c, 0.0, False) for _ in range(LAYERS)]
    torch.set_default_dtype(torch.float32)
    cos, sin = (t.to(bench.device) for t in rotary_table(length, c["head"], bench.device))
    found = {"forward": [], "backward": []}
    for number in range(PASSES + 1):
        x = torch.randn(batch, length, c["hidden"], device=bench.device, dtype=torch.bfloat16).requires_grad_()
        kept = []

        def forward():
            y = x
            for block in blocks:
                y = block.run(y, cos, sin)
            kept.append(y)

        one = {"forward": trace(bench, forward)}
        gradient = torch.randn_like(kept[0])
        one["backward"] = trace(bench, lambda: kept[0].backward(gradient))
        for block in blocks:
            block.zero_grad(set_to_none=True)
        if number:  # the first finds nothing warm
            for phase, kernels in one.items():
                found[phase].append(kernels)
    for phase, passes in found.items():
        rows = []
        for kernels in passes:
            us = {label: total / LAYERS for label, (_, total) in sums_of(kernels)[0].items()}
            gemm, attention = us.pop("gemm", 0.0), us.pop("attention", 0.0)
            rows.append(dict(gemm=gemm, attention=attention, other=sum(us.values())))
        middle = {k: sorted(r[k] for r in rows)[len(rows) // 2] for k in rows[0]}
        ends = sorted(r["other"] for r in rows)
        bench.out.line(
            "sample", part="eager", kind="layer", library="eager", variant=phase, mode="burst", model=name,
            sequences=batch, length=length, gemm_us=middle["gemm"], attention_us=middle["attention"],
            other_us=middle["other"], other_low_us=ends[0], other_high_us=ends[-1], repeats=PASSES,
            kernels=len(passes[0]) / LAYERS, clock_after_mhz=bench.nvml.clock(), power_w=bench.nvml.power(),
        )  # fmt: skip
        bench.out.line("kernels", part="eager", kind="layer", variant=phase, model=name, sequences=batch,
                       kernels=sorted(([k, round(us / LAYERS, 2), n / LAYERS] for k, (n, us) in sums_of(passes[0])[1].items()),
                                      key=lambda e: -e[1])[:24])


def eager(bench):
    for name, batch, length in CASES[:2] if bench.once else CASES:
        bench.case(f"{name} {batch} x {length}", lambda name=name, batch=batch, length=length:
                   layers(bench, name, batch, length))
