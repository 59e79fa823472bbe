# SPDX-License-Identifier: Apache-2.0
# Asks what a product takes whose weight comes from memory, beside one whose weight stays in L2.
"""bf16 products of few rows through PyTorch's linear, one after the other in a CUDA graph: `warm`
goes through one weight again and again, `cold` round a ring of copies that is several times larger
than the L2, as layers of a model do. Activations come from L2 both times. A line a weight (n, k),
number of rows and kind: us a product, and how many copies the ring has.
"""
import math
import time

import torch
import torch.nn.functional as F

from bench import Bench

RING = 480 << 20
ROWS = [1, 4, 8, 16, 64, 256]
WEIGHTS = [
    (512, 512), (1024, 512), (576, 2048), (64, 2048), (512, 2048), (1024, 1024), (1344, 2048),
    (2048, 1024), (4096, 512), (5120, 768), (256, 7168), (4096, 1024), (2048, 1536),
    (1024, 4096),  # up to 8 MB
    (2048, 2048), (2048, 2816), (3072, 2048), (3648, 2048), (4096, 2048), (2048, 5120),
    (2112, 7168), (5632, 2048), (6144, 2048), (2048, 8192), (8192, 2048),  # to 34
    (4096, 4096), (3840, 4096), (6144, 4096), (5120, 5120), (8192, 3840), (16384, 2048),
    (7680, 5120), (4096, 11008), (12288, 4096), (4096, 14336), (3840, 15360), (5120, 17920),
    (22016, 4096), (28672, 4096), (30720, 3840), (35840, 5120), (49152, 2048), (102400, 2048),
    (128256, 4096)]


def timed(bench, call, calls, repeats=7):
    graph = bench.capture(call, calls)
    if graph is None:
        raise RuntimeError("no graph")
    graph.replay()
    bench.stream.synchronize()
    times = []
    for _ in range(repeats):
        time.sleep(0.002)
        bench.events_us(graph.replay)  # clocks and instruction caches
        times.append(bench.events_us(graph.replay) / calls)
    times.sort()
    del graph
    return {"time_us": times[len(times) // 2], "low_us": times[0], "high_us": times[-1],
            "repeats": repeats, "calls": calls}


def weight_case(bench, n, k):
    copies = max(1, math.ceil(RING / (2 * n * k)))
    pool = torch.randn(copies * n * k, device=bench.device, dtype=torch.bfloat16).view(copies, n, k)
    ring = [pool[i] for i in range(copies)]
    for m in ROWS:
        if 2 * m * n > 64 << 20:
            continue  # results would push out what is to stay
        x = bench.random(m, k)
        kept = [None]

        def call(weights, i):
            kept[0] = F.linear(x, weights[i % len(weights)])

        call(ring, 0)
        once = bench.events_us(lambda: [call(ring, i) for i in range(4)]) / 4
        calls = copies * max(1, math.ceil(max(40, min(400, 1500 / once)) / copies))
        for kind, weights in (("warm", ring[:1]), ("cold", ring)):
            timing = timed(bench, lambda i: call(weights, i), calls)
            bench.sample("gemm", "cublas", kind, timing, input="bf16", output="bf16",
                         m=m, n=n, k=k, copies=len(weights))


def main():
    bench = Bench("cold-products", 150)
    bench.conditions()
    with torch.no_grad():
        for n, k in WEIGHTS if not bench.quick else WEIGHTS[::8]:
            bench.attempt(f"{n} x {k}", lambda: weight_case(bench, n, k))
    bench.close()


if __name__ == "__main__":
    main()
