# SPDX-License-Identifier: Apache-2.0
# Finds which models, pools and batches fit into the GPU's memory and which run out of it.
"""A child process (it may die without harm) loads a model's weights once and then, for each case, takes a
pool of so many blocks, runs one step of the whole token budget in as many sequences as the batch has, and
one decode step of them. `outcome` is "ran" or "out of memory", `stage` where it ran out: weights, pool or
step. Pools stand around the limit that the child estimates from free memory and the peak of a first step
(`limit_blocks`, `share` of it); most of the cases are within 10% of it. Memory is held by PyTorch's caching
allocator, emptied between cases; no CUDA graphs.
"""

import gc
import json
import subprocess
import sys

import torch

from serve_model import SHAPES
from serve_runner import Runner

NEAR = (0.91, 0.94, 0.96, 0.98, 0.99, 1.0, 1.01, 1.02, 1.04, 1.06, 1.09)
FAR = (0.3, 0.5, 0.7, 0.85, 1.15, 1.3, 2.0)
# model, token budget, sequences
SETTINGS = (
    ("llama-3.1-8b", 2048, 256),
    ("llama-3.1-8b", 16384, 256),
    ("llama-3.2-1b", 8192, 1024),
    ("qwen3-30b-a3b", 8192, 256),
    ("llama-3.1-70b", 2048, 64),
    ("qwen3-8b", 32768, 64),
)


def shares_of(number, quick):
    far = FAR[number % 2 :: 2]
    return NEAR[::5] + far[::2] if quick else NEAR + far


def child(arguments):
    """Prints a JSON line for each case."""
    settings = json.loads(arguments)
    torch.set_grad_enabled(False)
    device = torch.device("cuda", 0)
    torch.cuda.set_device(0)
    torch.cuda.set_stream(torch.cuda.Stream())
    for number, name, budget, sequences, quick in settings:
        cases = shares_of(number, quick)
        try:
            runner = Runner(
                SHAPES[name],
                device,
                context=32768,
                max_sequences=sequences,
                token_budget=budget,
                blocks=1,
                graphs=False,
                fill=False,
                note=lambda text: None,
            )
        except torch.OutOfMemoryError as error:
            say(number, outcome="out of memory", stage="weights", reason=str(error)[:160])
            error = None
            gc.collect()
            torch.cuda.empty_cache()
            continue
        runner.pool = runner.cache = None
        runner.empty()
        free, total = torch.cuda.mem_get_info()
        limit = (free - runner.memory["workspace"]) // runner.block_bytes
        for share in cases:
            blocks = max(int(share * limit), runner.profile_blocks())
            found = attempt(runner, blocks)
            say(
                number,
                share=share,
                blocks=blocks,
                limit_blocks=limit,
                free_bytes=free,
                workspace_bytes=runner.memory["workspace"],
                weights_bytes=runner.memory["weights"],
                total_bytes=total,
                block_bytes=runner.block_bytes,
                **found,
            )
        runner.close()
        del runner
        gc.collect()
        torch.cuda.empty_cache()


def attempt(runner, blocks):
    stage = "pool"
    try:
        runner.make_pool(blocks)
        stage = "step"
        plan = runner.profile_plan()
        runner.step(plan)
        plan.table = []
        for request, _, length, _ in plan.chunks:
            request.done = length - 1
            plan.decodes.append(request)
        plan.chunks = []
        runner.step(plan)
        found = {"outcome": "ran"}
    except torch.OutOfMemoryError:
        found = {"outcome": "out of memory", "stage": stage}
    found["peak_bytes"] = torch.cuda.max_memory_allocated()
    found["reserved_bytes"] = torch.cuda.memory_reserved()
    runner.pool = runner.cache = None
    gc.collect()
    runner.empty()
    torch.cuda.reset_peak_memory_stats()
    return found


def say(number, **keys):
    print(json.dumps({"case": number, **keys}), flush=True)


def memory(session, script, models=None):
    """Runs the child, again with what is left where it dies; `models`: only settings of these."""
    left = [
        [i, *setting, session.quick]
        for i, setting in enumerate(SETTINGS)
        if models is None or setting[0] in models
    ]
    if session.quick:
        left = left[:1]
    counts = {}
    while left and session.has_time() and not session.interrupted:
        process = subprocess.Popen(
            [sys.executable, script, "--memory-child", json.dumps(left)], stdout=subprocess.PIPE, text=True
        )
        seen = -1
        for line in process.stdout:
            found = json.loads(line)
            seen = found.pop("case")
            name, budget, sequences = SETTINGS[seen]
            one = f"memory/{name}/t{budget}-s{sequences}/share{found.get('share', 0)}"
            session.sample(one, "memory", model=name, token_budget=budget, sequences=sequences, **found)
            key = (name, budget, found["outcome"])
            counts[key] = counts.get(key, 0) + 1
        code = process.wait()
        if code == 0:
            break
        died = left[0][0] if seen < 0 else seen
        session.out.line(
            "failed", id=f"memory/{SETTINGS[died][0]}", reason=f"the child ended with code {code}"
        )
        left = [one for one in left if one[0] > died]
    session.note(f"memory: {counts}")
