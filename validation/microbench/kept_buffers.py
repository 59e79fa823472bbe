# SPDX-License-Identifier: Apache-2.0
# Asks what a host far ahead pays where buffers of collectives are kept until their stream has passed.
"""Run: python3 kept_buffers.py --output FILE, on one GPU.

A chain of products, each followed by a kernel on a second stream, as a collective would be. `kept`: the buffer is recorded
on that stream, as PyTorch's process groups did in 2023, so that it cannot be had again before the stream has passed.
`held`: the host holds two until the second stream has passed, and waits for it. A ballast leaves so much memory free.
`retries`: the allocator found none, waited for the device and gave its unused blocks back.
"""

import argparse
import collections
import datetime
import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import Nvml, host_cpu

WIDTH, CALLS, REPEATS = 8192, 160, 5  # Llama 2 70B: two all-reduces in each of 80 layers
TOKENS = (1024, 2048, 4096, 8192, 16384)
FREE = (8, 16)  # GiB


def chain(x, weight, side, kept):
    main = torch.cuda.current_stream()
    held = collections.deque()
    for _ in range(CALLS):
        y = x @ weight
        side.wait_stream(main)
        with torch.cuda.stream(side):
            y.add_(1)
            passed = side.record_event()
        main.wait_stream(side)
        if kept:
            y.record_stream(side)
        else:
            held.append((passed, y))
            if len(held) > 2:
                held.popleft()[0].synchronize()
        x = y
    return x


def timed(weight, tokens, free, kept):
    torch.cuda.empty_cache()
    there = torch.cuda.mem_get_info()[0]
    ballast = torch.empty(there - free * 2**30 - 2 * tokens * WIDTH, dtype=torch.uint8, device="cuda")
    x = torch.randn(tokens, WIDTH, dtype=torch.float16, device="cuda")
    side = torch.cuda.Stream()
    times, issues, retries = [], [], []
    for _ in range(REPEATS + 2):
        torch.cuda.synchronize()
        before = torch.cuda.memory_stats()["num_alloc_retries"]
        begin = time.perf_counter()
        last = chain(x, weight, side, kept)
        issues.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        retries.append(torch.cuda.memory_stats()["num_alloc_retries"] - before)
        del last
    del ballast, x
    torch.cuda.empty_cache()
    return times[2:], issues[2:], retries[2:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(1)
    weight = torch.randn(WIDTH, WIDTH, dtype=torch.float16, device="cuda") / WIDTH**0.5
    lines = [{
        "record": "conditions", "program": "kept_buffers", "device": torch.cuda.get_device_name(), "driver": Nvml(0).driver(),
        "cuda": torch.version.cuda, "torch": str(torch.__version__), "host": host_cpu(), "date": datetime.date.today().isoformat(),
    }]  # fmt: skip
    for free in FREE:
        for tokens in TOKENS:
            for variant in ("held", "kept"):
                times, issues, retries = timed(weight, tokens, free, variant == "kept")
                value, low, high, issue = (round(1e3 * x, 2) for x in (statistics.median(times), min(times), max(times),
                                                                       statistics.median(issues)))  # fmt: skip
                lines.append({
                    "record": "sample", "part": "kept_buffers", "kind": "software", "variant": variant, "free_gib": free,
                    "tokens": tokens, "buffer_bytes": 2 * tokens * WIDTH, "calls": CALLS, "value": value, "low": low,
                    "high": high, "issue": issue, "retries": statistics.median(retries), "unit": "ms",
                })  # fmt: skip
                print(f"{free:2} GiB free, {tokens:5} tokens, {variant}: {value:7.2f} ms ({low:.2f} to {high:.2f}), "
                      f"issued in {issue:.2f}, {statistics.median(retries)} retries", flush=True)  # fmt: skip
    options.output.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
