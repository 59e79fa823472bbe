#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes faults on one GPU while the serving engine decodes, and keeps what a user would have of each run.
"""serving.py --output DIR [--set first]: steps of decodes of the engine in validation/microbench (serve_runner.py),
one GPU, at a fixed batch and context. A run leaves run.json (with the times of its steps, which no program
of this kind prints), smi.csv and rank0.json.gz, as worker.py does.
"""

import argparse
import gc
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "microbench"))

import torch

from cases import held
from making import FAULTS
from serve_model import SHAPES
from serve_runner import Runner
from serve_steps import fixed_plan
from worker import SMI, conditions, thinned

# Model, sequences of a step, their context, and whether CUDA graphs replay it.
PROGRAMS = {
    "decode-8b-64": dict(model="llama-3.1-8b", batch=64, context=2048, graphs=True),
    "decode-8b-16": dict(model="llama-3.1-8b", batch=16, context=4096, graphs=True),
    "decode-8b-64-eager": dict(model="llama-3.1-8b", batch=64, context=2048, graphs=False),
    "decode-1b-64": dict(model="llama-3.2-1b", batch=64, context=2048, graphs=True),
    "decode-8b-8": dict(model="llama-3.1-8b", batch=8, context=3072, graphs=True),
    "decode-8b-32-eager": dict(model="llama-3.1-8b", batch=32, context=1024, graphs=False),
    "decode-qwen-32": dict(model="qwen3-8b", batch=32, context=3072, graphs=True),
    "decode-qwen-48-eager": dict(model="qwen3-8b", batch=48, context=1536, graphs=False),
    "decode-qwen-24": dict(model="qwen3-8b", batch=24, context=4096, graphs=True),
    "decode-qwen-64-eager": dict(model="qwen3-8b", batch=64, context=1024, graphs=False),
}
NONE = dict(fault="none")
FIRST = [
    ("decode-8b-64", "healthy", "", NONE),
    ("decode-8b-64", "late-host", "busy-host", dict(fault="sleep", rank=0, share=0.2)),
    ("decode-8b-64", "late-host", "busy-host", dict(fault="sleep", rank=0, share=0.6)),
    ("decode-8b-64", "healthy", "", NONE),
    ("decode-8b-64", "busy-gpu", "busy-gpu", dict(fault="busy", rank=0, duty=0.3)),
    ("decode-8b-64", "busy-gpu", "busy-gpu", dict(fault="busy", rank=0, duty=0.7)),
    ("decode-8b-64", "healthy", "", NONE),
    ("decode-8b-64", "few-sms", "few-sms", dict(fault="few-sms", rank=0, sms=66)),
    ("decode-8b-64", "few-sms", "few-sms", dict(fault="few-sms", rank=0, sms=110)),
    ("decode-8b-16", "healthy", "", NONE),
    ("decode-8b-16", "late-host", "busy-host", dict(fault="sleep", rank=0, share=0.4)),
    ("decode-8b-16", "healthy", "", NONE),
    ("decode-8b-16", "busy-gpu", "busy-gpu", dict(fault="busy", rank=0, duty=0.5)),
    ("decode-8b-16", "healthy", "", NONE),
    ("decode-8b-64-eager", "healthy", "", NONE),
    ("decode-8b-64-eager", "forced-sync", "forced-sync", dict(fault="sync-kernels")),
    ("decode-8b-64-eager", "healthy", "", NONE),
    ("decode-8b-64-eager", "busy-host", "busy-host", dict(fault="busy-host", processes=6)),
    ("decode-8b-64-eager", "allocator", "allocator-retries", dict(fault="empty-cache")),
    ("decode-8b-64-eager", "healthy", "", NONE),
]


def cases_of(program, *faults):
    """A healthy run first, one in the middle, and the faults around it."""
    rows = [(program, kind, truth, fault) for kind, truth, fault in faults]
    healthy = (program, "healthy", "", NONE)
    return [healthy, *rows[: len(rows) // 2], healthy, *rows[len(rows) // 2 :]]


def late(share):
    return ("late-host", "busy-host", dict(fault="sleep", rank=0, share=share))


def busy(duty):
    return ("busy-gpu", "busy-gpu", dict(fault="busy", rank=0, duty=duty))


def few(sms):
    return ("few-sms", "few-sms", dict(fault="few-sms", rank=0, sms=sms))


SYNC = ("forced-sync", "forced-sync", dict(fault="sync-kernels"))
CASES = {
    "first": FIRST,
    # Runs that values may be set by, made later: the first ones have another process on held-out runs alone.
    "set-by": [
        *cases_of("decode-1b-64", busy(0.2), busy(0.5), busy(0.9), few(33), few(88), few(121), late(0.25)),
        *cases_of("decode-8b-8", busy(0.25), busy(0.5), busy(0.85), few(44), few(77), few(115), late(0.3)),
        *cases_of("decode-8b-32-eager", busy(0.35), busy(0.75), few(55), few(99), SYNC),
    ],
    "second": [
        *cases_of("decode-qwen-24", busy(0.3), busy(0.65), few(70), few(110), late(0.45)),
        *cases_of(
            "decode-qwen-64-eager", busy(0.7), few(95), SYNC, ("busy-host", "busy-host", dict(fault="busy-host", processes=9))
        ),
    ],
    "fresh": [
        *cases_of("decode-qwen-32", busy(0.4), busy(0.8), few(60), few(105), late(0.35)),
        *cases_of(
            "decode-qwen-48-eager", busy(0.6), few(80), SYNC, ("busy-host", "busy-host", dict(fault="busy-host", processes=8))
        ),
    ],
}


class Run:
    """What faults ask of a run, and its steps."""

    def __init__(self, runner, program, fault, base, folder):
        self.runner, self.rank, self.world, self.base, self.folder = runner, 0, 1, base, folder
        p = PROGRAMS[program]
        self.plan = fixed_plan(runner, p["batch"], 0, p["context"])
        fault = dict(fault)
        self.fault = FAULTS[fault.pop("fault")](self, **fault)

    def model(self):
        return self.runner.model

    def step(self, number):
        start = time.perf_counter()
        self.fault.before_forward(number)
        self.runner.step(self.plan)
        self.plan.table = []
        self.fault.after_backward(number)
        return time.perf_counter() - start

    def go(self):
        with self.fault.on():
            for number in range(20):
                self.step(-20 + number)
            smi = subprocess.Popen(
                ["nvidia-smi", f"--query-gpu={SMI}", "--format=csv", "-lms", "200", "-f", str(self.folder / "smi.csv")],
                stderr=subprocess.DEVNULL,
            )
            begin, times = time.perf_counter(), []
            while time.perf_counter() - begin < 1.6:
                times.append(self.step(len(times)))
            smi.terminate()
            self.profile()
        return times

    def profile(self):
        raw = os.path.join(tempfile.gettempdir(), "serving_trace.json")
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        schedule = torch.profiler.schedule(wait=0, warmup=1, active=4, repeat=1)
        with torch.profiler.profile(activities=activities, schedule=schedule) as profiler:
            for i in range(5):
                self.step(1000 + i)
                profiler.step()
        profiler.export_chrome_trace(raw)
        with open(raw) as file:
            trace = thinned(json.load(file))
        with gzip.GzipFile(self.folder / "rank0.json.gz", "wb", compresslevel=9, mtime=0) as file:
            file.write(json.dumps(trace, separators=(",", ":")).encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--set", choices=CASES, default="first")
    options = parser.parse_args()
    output, runner, model = options.output, None, None
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    torch.set_grad_enabled(False)
    torch.cuda.set_stream(torch.cuda.Stream())
    base, seen, known = {}, {}, conditions(gpus=1)
    for program, kind, truth, fault in CASES[options.set]:
        if PROGRAMS[program]["model"] != model:
            runner = None
            gc.collect()
            torch.cuda.empty_cache()
            model = PROGRAMS[program]["model"]
            runner = Runner(SHAPES[model], device, context=8192, max_sequences=64, share=0.8, note=print)
            sizes = runner.sizes
        seen[program, kind] = seen.get((program, kind), 0) + 1
        name = f"{program}-{kind}-{seen[program, kind]}"
        folder = output / name
        folder.mkdir(parents=True, exist_ok=True)
        runner.sizes = sizes if PROGRAMS[program]["graphs"] else []
        failed, times = [], []
        try:
            times = Run(runner, program, fault, base.get(program, 0.015), folder).go()
        except Exception as error:
            failed = [" ".join(f"{type(error).__name__}: {error}".split())[:300]]
        step = sorted(times)[len(times) // 2] if times else 0.0
        if fault is NONE and times:
            base[program] = step
        record = dict(
            id=name,
            program=program,
            truth=truth,
            held=held(name, program),
            fault=fault,
            environment={},
            conditions=known,
            running=PROGRAMS[program],
            failed=failed,
            steps_s=[round(t, 7) for t in times],
        )
        (folder / "run.json").write_text(json.dumps(record) + "\n")
        print(f"{name:36} {1e3 * step:8.3f} ms  {len(times)} steps {' '.join(failed)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
