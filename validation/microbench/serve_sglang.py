#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Serves models of random weights with SGLang itself on one GPU; times tokens as clients see them.
"""Closed loops of random prompts against SGLang's engine in its own process, without a server.

Models, loops and what is measured are those of serve_vllm.py, so that the two engines can be held
against each other; settings are SGLang's own defaults, but for what --engine names. Prompts are
drawn anew for each request, so that nothing is found in the radix cache, which stays on. Lines on
standard output: `conditions` and `engine` say what was run and with what, `loop` what a closed loop
of clients saw, `steps` (with --steps or --profile) how long a decode step of a batch that stays as
it is took, from one token of its first answer to the next. Needs SGLang (0.5.12.post1 was run). It
reads fields that configurations made here lack for gemma3-12b (factor of RoPE) and deepseek-v2-lite
(moe_layer_freq), so that these two do not start.

With --profile, PyTorch's profiler looks at such steps and at one prompt alone, after the loops.
"""
import argparse
import asyncio
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

import serve_vllm
from serve_vllm import LOOPS, MODELS, Clients, line, save_model, summary, turn

LIBRARIES = ("sglang", "sglang-kernel", "torch", "triton", "transformers")
STATE = ("driver_version", "power.limit", "clocks.max.sm", "clocks.max.mem", "clocks.sm",
         "clocks.mem", "temperature.gpu")


def params(max_tokens, temperature, ignore_eos, min_tokens=0, detokenize=False):
    """What serve_vllm.py asks of a request, in SGLang's words."""
    return {"max_new_tokens": max_tokens, "temperature": temperature, "ignore_eos": ignore_eos}


class Engine:
    """SGLang's engine, called as serve_vllm.py calls vLLM's."""

    def __init__(self, engine, folder):
        self.engine, self.folder = engine, folder

    async def generate(self, prompt, params, name):
        ended = False
        try:
            async for out in await self.engine.async_generate(
                    input_ids=prompt["prompt_token_ids"], sampling_params=params, stream=True,
                    rid=name):
                yield SimpleNamespace(outputs=[SimpleNamespace(token_ids=out["output_ids"])])
            ended = True
        finally:
            if not ended:
                self.engine.tokenizer_manager.abort_request(rid=name)

    async def start_profile(self):
        if self.folder:
            await self.engine.tokenizer_manager.start_profile(
                output_dir=self.folder, activities=["CPU", "GPU"], with_stack=False,
                record_shapes=False)

    async def stop_profile(self):
        if self.folder:
            await self.engine.tokenizer_manager.stop_profile()


def conditions():
    import torch
    asked = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(STATE), "--format=csv,noheader"],
                           capture_output=True, text=True, check=True).stdout
    state = [x.strip() for x in asked.strip().split("\n")[0].split(",")]
    line("conditions", device=torch.cuda.get_device_name(), cuda=torch.version.cuda,
         **{k.replace(".", "_"): v for k, v in zip(STATE, state)},
         **{x.replace("-", "_"): importlib.metadata.version(x) for x in LIBRARIES},
         date=datetime.date.today().isoformat())


async def serve(name, options):
    import sglang
    import torch
    conditions()
    begun = time.time()
    folder = tempfile.mkdtemp()
    config = save_model(name, folder)
    most = min(20480, config.max_position_embeddings)
    settings = {"context_length": most, **json.loads(options.engine)}
    engine = sglang.Engine(model_path=folder, skip_tokenizer_init=True, load_format="dummy",
                           dtype="bfloat16", log_level="info", **settings)
    chosen = {x: getattr(engine.server_args, x) for x in (
        "attention_backend", "sampling_backend", "moe_runner_backend", "chunked_prefill_size",
        "max_prefill_tokens", "page_size", "cuda_graph_max_bs", "disable_overlap_schedule",
        "disable_piecewise_cuda_graph", "piecewise_cuda_graph_max_tokens", "disable_radix_cache",
        "mem_fraction_static")}
    line("engine", model=name, sglang=sglang.__version__, torch=torch.__version__,
         device=torch.cuda.get_device_name(), settings=settings, chosen=chosen,
         started_s=time.time() - begun, date=datetime.date.today().isoformat())
    lock = await turn(options)
    begun = time.time() if lock else begun
    clients = Clients(Engine(engine, options.profile and os.path.abspath(options.profile)), params,
                      config.vocab_size, 1)
    await clients.run(512, 32, 4, 8)  # warm
    await clients.run(min(8192, most - 16), 8, 1, 1)
    loops = LOOPS if not options.loops else [tuple(x) for x in json.loads(options.loops)]
    for loop in loops:
        if time.time() - begun > options.seconds:
            print(f"left out after {options.seconds} s: {loop}", file=sys.stderr)
            continue
        lasted = await clients.run(*loop)
        line("loop", model=name, isl=loop[0], osl=loop[1], concurrency=loop[2],
             **summary(clients.times, lasted))
    if options.profile or options.steps:
        await serve_vllm.profile(clients, name, most)
    engine.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--seconds", type=float, default=150, help="loops left then are not run")
    parser.add_argument("--engine", default="{}", help="more of SGLang's settings, as JSON")
    parser.add_argument("--loops", default="", help="[[prompt, answer, clients, requests], ...]")
    parser.add_argument("--steps", action="store_true", help="time steps of steady batches as well")
    parser.add_argument("--profile", default="", help="folder for traces: profile steps as well")
    parser.add_argument("--beside", default="", help="FOLDER:N: start beside others, N in all")
    options = parser.parse_args()
    asyncio.run(serve(options.model, options))
    sys.stdout.flush()
    os._exit(0)  # engine processes may linger


if __name__ == "__main__":
    main()
