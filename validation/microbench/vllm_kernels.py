#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes lines of the traces that serve_vllm.py writes with --profile: which kernels a step has, and for how long.
"""vllm_kernels.py MODEL FOLDER. Needs neither a GPU nor vLLM.

Lines on standard output: `step` (a median step of decodes), `prompt`, and the `kernel`s of each, by
where they run: in the step's `graph`, in its second stream (`side`), or `between` one graph and the
next.
"""
import argparse
import collections
import glob
import gzip
import json
import os
import re
import statistics

from serve_vllm import MODELS, PROFILED, line


def kernel_name(event):
    name = event["name"].removeprefix("void ").replace("(anonymous namespace)::", "")
    if event["cat"] != "kernel":
        return " ".join(name.split(" ")[:1 if name.startswith("Memset") else 2])
    if "FlashAttnFwd" in name:
        return "flash3 combine" if "Combine" in name else "flash3"
    if name.startswith("at::") or "at::native" in name:
        parts = re.findall(r"(?:native|cuda)::(\w+)", name)
        return "aten " + ".".join(dict.fromkeys(parts))[:60]
    return re.sub(r"[<(].*", "", name, flags=re.DOTALL)[:80]


def kernel_lines(model, case, runs, steps, least_us):
    """`runs`: lists of (where, event). Those of less than least_us are added up by name."""
    shapes, found = collections.defaultdict(list), collections.defaultdict(list)
    for where, event in (x for run in runs for x in run):
        grid = "x".join(map(str, event["args"].get("grid", ())))
        shapes[where, kernel_name(event), grid].append(event["dur"])
    for (where, name, grid), times in shapes.items():
        long = statistics.median(times) >= least_us
        found[where, name, grid if long else ""].extend(times)
    for (where, name, grid), times in sorted(
            found.items(), key=lambda x: (x[0][0] != "graph", x[0][0], -sum(x[1]))):
        more = {"grid": grid} if grid else {}
        line("kernel", model=model, **case, where=where, kernel=name, **more,
             calls=round(len(times) / steps, 2), time_us=statistics.median(times),
             sum_us=sum(times) / steps)


def read_steps(model, case, gpu, launches):
    """Each graph launched is a step; the first and the last may not be whole."""
    by_launch = collections.defaultdict(list)
    for event in gpu:
        by_launch[event["args"].get("correlation")].append(event)
    graphs = sorted((by_launch[x] for x in launches if len(by_launch[x]) > 20),
                    key=lambda g: g[0]["ts"])
    begins = [g[0]["ts"] for g in graphs]
    ends = [max(e["ts"] + e["dur"] for e in g) for g in graphs]
    inside = {id(e) for g in graphs for e in g}
    runs, gaps = [], []
    for i in range(1, len(graphs) - 1):
        main = statistics.mode(e["args"]["stream"] for e in graphs[i])
        chain = [e for e in graphs[i] if e["args"]["stream"] == main]
        gaps.append(statistics.mean(b["ts"] - a["ts"] - a["dur"]
                                    for a, b in zip(chain, chain[1:])))
        between = [e for e in gpu if id(e) not in inside and ends[i] - 1 <= e["ts"] < begins[i + 1]]
        runs.append([("graph" if e["args"]["stream"] == main else "side", e) for e in graphs[i]]
                    + [("between", e) for e in between])
    period = [b - a for a, b in zip(begins[1:], begins[2:])]
    lasts = [b - a for a, b in zip(begins, ends)]
    line("step", model=model, **case, steps=len(runs), period_us=statistics.median(period),
         graph_us=statistics.median(lasts), kernels=len(graphs[1]),
         between=len(runs[0]) - len(graphs[1]), mean_gap_us=statistics.median(gaps))
    kernel_lines(model, case, runs, len(runs), 4)


def read_traces(model, folder):
    """Traces in the order in which they were written: of PROFILED, then of the prompt."""
    most = min(20480, MODELS[model][2].get("max_position_embeddings", 20480))
    cases = [{"batch": b, "context": min(c, most - 512)} for b, c in PROFILED]
    for file, case in zip(sorted(glob.glob(os.path.join(folder, "*.gz"))), cases + [None]):
        with gzip.open(file) as trace:
            events = json.load(trace)["traceEvents"]
        gpu = sorted((e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")),
                     key=lambda e: e["ts"])
        if case:
            read_steps(model, case, gpu, [e["args"]["correlation"] for e in events
                                          if "GraphLaunch" in e.get("name", "")])
            continue
        run = next(e for e in events if e.get("cat") == "gpu_user_annotation"
                   and e["name"].startswith("execute_context_1"))
        tokens = int(re.findall(r"\d+", run["name"])[1])
        gpu = [e for e in gpu if run["ts"] - 1 <= e["ts"] <= run["ts"] + run["dur"] + 1]
        line("prompt", model=model, tokens=tokens, span_us=run["dur"],
             busy_us=sum(e["dur"] for e in gpu), kernels=len(gpu))
        kernel_lines(model, {"tokens": tokens}, [[("prompt", e) for e in gpu]], 1, 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("folder", help="of traces")
    options = parser.parse_args()
    read_traces(options.model, options.folder)


if __name__ == "__main__":
    main()
