# SPDX-License-Identifier: Apache-2.0
# Asks how long whole training steps of small models take on one GPU: eager, compiled, dropout, recomputed.
"""`amp`: weights, gradients and optimizer states in FP32, products in BF16 under autocast; `bf16`: all of
them in BF16. AdamW is PyTorch's fused one. `inductor`: each layer is compiled, and the output layer with
its loss; `inductor-whole`: the model. Gradients are not clipped and the loss is not read. Times are those
between events of steps that follow each other without a wait, so they hold what the host costs;
`forward_us`, `backward_us`, `optimizer_us` add up to a step.
"""

import torch

from training_models import MODELS, Model, flop_of, timed_steps, with_adapters

ATTENTION = {0: "math", 1: "flash2", 2: "efficient", 3: "cudnn-attention"}


def cases(quick):
    """Model, sequence, micro-batch, precision, compiled, dropout, recompute, rank of adapters; first what matters."""
    if quick:
        return [
            ("gpt-125m", 1024, 2, "amp", True, 0.1, False, 0),
            ("llama-350m", 1024, 1, "bf16", False, 0.0, True, 0),
        ]
    found = []
    for model, sequence, batch in (("gpt-125m", 1024, 8), ("gpt-350m", 1024, 8), ("gpt-1.3b", 2048, 4)):
        for compiled in (True, False):
            for dropout in (0.0, 0.1):
                found.append((model, sequence, batch, "amp", compiled, dropout, False, 0))
        found.append((model, sequence, batch, "bf16", True, 0.0, False, 0))
        found.append((model, sequence, batch, "amp", True, 0.0, True, 0))
    for compiled in (True, False):
        for sequence, batch, recompute in (
            (4096, 1, False),
            (4096, 2, False),
            (4096, 2, True),
            (2048, 4, False),
            (1024, 1, False),
        ):
            found.append(("llama-3.2-1b", sequence, batch, "bf16", compiled, 0.0, recompute, 0))
    found += [
        ("llama-3.2-1b", 4096, 2, "amp", True, 0.0, False, 0),
        ("llama-3.2-1b", 4096, 2, "amp", False, 0.0, False, 0),
        ("llama-3.2-1b", 4096, 4, "bf16", True, 0.0, False, 0),
        ("llama-350m", 2048, 4, "bf16", True, 0.0, False, 0),
        ("llama-350m", 2048, 4, "bf16", False, 0.0, False, 0),
        ("llama-350m", 2048, 4, "amp", True, 0.0, False, 0),
        ("gpt-125m", 1024, 1, "amp", True, 0.0, False, 0),
        ("gpt-125m", 1024, 1, "amp", False, 0.0, False, 0),
        ("gpt-125m", 2048, 8, "amp", True, 0.1, False, 0),
        ("gpt-350m", 1024, 1, "bf16", False, 0.0, False, 0),
        ("gpt-350m", 2048, 4, "bf16", False, 0.1, False, 0),
        ("gpt-1.3b", 2048, 1, "bf16", True, 0.0, False, 0),
        ("gpt-1.3b", 2048, 1, "bf16", False, 0.0, False, 0),
        ("gpt-1.3b", 1024, 8, "bf16", False, 0.1, True, 0),
        ("llama-3.2-3b", 4096, 1, "bf16", True, 0.0, False, 0),
        ("llama-3.2-3b", 2048, 1, "bf16", False, 0.0, False, 0),
        ("llama-3.1-8b", 4096, 1, "bf16", True, 0.0, False, 16),
        ("llama-3.1-8b", 2048, 1, "bf16", False, 0.0, True, 16),
        ("gpt-125m", 1024, 8, "amp", "whole", 0.0, False, 0),
    ]
    return found


def backend_of(bench, c, batch, sequence, dropout):
    q, k, v = (
        torch.randn(batch, heads, sequence, c["head"], device=bench.device, dtype=torch.bfloat16)
        for heads in (c["heads"], c["kv_heads"], c["kv_heads"])
    )
    return ATTENTION.get(
        int(
            torch._fused_sdp_choice(
                q, k, v, None, dropout, True, scale=None, enable_gqa=c["heads"] != c["kv_heads"]
            )
        ),
        "other",
    )


def step_case(bench, name, sequence, batch, precision, compiled, dropout, recompute, rank):
    c = MODELS[name]
    torch._dynamo.reset()
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if precision == "amp" else torch.bfloat16)
    try:
        with torch.device(bench.device):
            model = Model(c, sequence, dropout, recompute, compiled is True)
            if rank:
                with_adapters(model, rank)
    finally:
        torch.set_default_dtype(default)
    if compiled == "whole":
        model.compile(dynamic=False)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    tokens = torch.randint(0, c["vocab"], (batch, sequence), device=bench.device)
    targets = torch.randint(0, c["vocab"], (batch, sequence), device=bench.device)

    def forward():
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "amp"):
            return model(tokens, targets)

    if bench.once:
        forward().backward()
        optimizer.step()
        torch.cuda.synchronize()
        return
    count = batch * sequence
    flop = flop_of(c, count, sequence, rank > 0)
    short = flop < 3e13  # the host's pace scatters
    timing = timed_steps(forward, optimizer, *((6, 24) if short else (3, 8)))
    variant = {True: "inductor", False: "eager", "whole": "inductor-whole"}[compiled]
    bench.sample(
        "training-step",
        "pytorch",
        variant,
        timing,
        model=name,
        precision=precision,
        sequence=sequence,
        micro_batch=batch,
        tokens=count,
        dropout=dropout,
        recompute=int(recompute),
        adapter_rank=rank,
        tokens_per_s=1e6 * count / timing["time_us"],
        flop=flop,
        parameters=sum(p.numel() for p in model.parameters()),
        trained=sum(p.numel() for p in parameters),
        attention=backend_of(bench, c, batch, sequence, dropout),
        clock_after_mhz=bench.nvml.clock(),
        power_w=bench.nvml.power(),
        temperature_c=bench.nvml.temperature(),
        **{k: v for k, v in c.items() if k not in ("kind", "tied")},
    )


def steps(bench):
    for case in cases(bench.quick):
        if bench.once and not case[4]:
            continue
        name, sequence, batch, precision, compiled, dropout, recompute, rank = case
        bench.case(
            f"step {case}",
            lambda: step_case(bench, *case),
            model=name,
            sequence=sequence,
            micro_batch=batch,
            precision=precision,
            compiled=str(compiled),
            dropout=dropout,
            recompute=int(recompute),
        )
        bench.free()
