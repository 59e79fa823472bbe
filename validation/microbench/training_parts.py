# SPDX-License-Identifier: Apache-2.0
# Asks what parts of training take that the other programs leave out; --part NAME runs one, --quick a sample.
"""Parts: baseline (copy bandwidth and a large product, to compare with), dropout, loss, wgrad, steps,
grouped, router, fp8, ring, mamba, mixers, sharding, eager. training_gemm.cu asks the weight gradients of cuBLASLt itself,
training_ranks.py steps on several GPUs. Lines are those that README.md describes; `failed` lines say what
could not be run and why, `kernels` lines name the kernels of a variant's first sample.
"""

import torch

from training_bench import TrainingBench
from training_dropout import dropout, loss
from training_eager import eager
from training_mamba import mamba, mixers
from training_pieces import ring, router
from training_products import fp8, grouped, wgrad
from training_sharding import sharding
from training_steps import steps

ABOUT = (
    "Parts of training: dropout in attention and after it, losses by vocabulary, weight gradients that add, FP8 "
    "products and casts, pieces of ring attention, grouped products, routing of experts, Mamba-2, small steps. "
    "time_us is the median of `repeats`, each of `calls` calls; low_us and high_us are the extremes. Operands are "
    "random and rotate over memory. Samples are short bursts with pauses, at full clocks; steps run without a pause."
)


def baseline(bench):
    if bench.once:
        return
    bench.random(1 << 30)
    source, target = bench.random(1 << 29), torch.empty(1 << 29, device=bench.device, dtype=torch.bfloat16)
    bench.measure(
        "copy",
        "pytorch",
        "copy",
        lambda i: target.copy_(source),
        in_graph=False,
        burst_ms=10.0,
        bytes_read=source.nbytes,
        bytes_written=source.nbytes,
    )
    bench.measure(
        "copy",
        "pytorch",
        "add",
        lambda i: target.add_(source),
        in_graph=False,
        burst_ms=10.0,
        bytes_read=2 * source.nbytes,
        bytes_written=source.nbytes,
    )
    a, b = bench.random(8192, 8192), bench.random(8192, 8192, offset=1 << 26)
    for mode, run in (("burst", bench.burst), ("sustained", lambda f: bench.sustained(f, 1.5))):
        timing = run(lambda i: a @ b.t())
        bench.out.line(
            "sample",
            part="baseline",
            kind="gemm",
            library="pytorch",
            variant="plain",
            mode=mode,
            input="bf16",
            output="bf16",
            role="forward",
            m=8192,
            n=8192,
            k=8192,
            groups=1,
            **timing,
        )


# part: what runs it, and its seconds
PARTS = {
    "baseline": (baseline, 20),
    "dropout": (dropout, 90),
    "loss": (loss, 90),
    "wgrad": (wgrad, 40),
    "steps": (steps, 180),
    "grouped": (grouped, 75),
    "router": (router, 60),
    "fp8": (fp8, 80),
    "ring": (ring, 75),
    "mamba": (mamba, 150),
    "mixers": (mixers, 90),
    "sharding": (sharding, 60),
    "eager": (eager, 60),
}


def main():
    bench = TrainingBench("training-parts", PARTS)
    bench.conditions(about=ABOUT)
    for i, part in enumerate(bench.parts):
        run, seconds = PARTS[part]
        bench.begin(part, seconds, bench.parts[i + 1 :])
        run(bench)
        bench.note(f"{part}: done, {bench.skipped} cases left out for time so far")
    bench.close()


if __name__ == "__main__":
    main()
