#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a request takes between its client and an engine behind Dynamo's frontend.

A client in Python (aiohttp, one line of the answer's stream at a time, as serving benchmarks read it) asks
Dynamo's frontend for completions. The workers behind it, in Python as those of every engine, answer at once,
so all that the client sees is the way: connection, tokeniser, routing, two hops of the request plane where
prompts have workers of their own, and the way back. Every line of output is one number of clients (0: one,
by a bare socket): median, 10th and 90th percentile over the rounds, which take turns. The tokeniser is timed
by itself. Several clients share the processors of one machine with all that they ask. Needs ai-dynamo, aiohttp,
tokenizers, and an etcd that listens; no GPU.

    python3 front.py --rounds 5 > front.jsonl
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

MODEL = "empty"
VOCABULARY = 32768
SAMPLE = {"record": "sample", "part": "front", "kind": "software"}
SPACING = 0.002  # seconds between tokens of an answer: a decode step


def make_model(folder):
    """A byte-level tokeniser with the merges of plain text, and what a model card asks for."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet, special_tokens=["<end>"],
                                  show_progress=False)
    draw = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(draw.choices(letters, weights=range(26, 0, -1), k=draw.randint(2, 9))) for _ in range(60000)]
    text = (" ".join(draw.choices(words, k=200)) for _ in range(3000))
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 131072, "eos_token_id": 0,
        "bos_token_id": 0}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, "bos_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>",
        "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"}))
    return tokenizer


async def work(role, folder):
    """A worker whose engine takes no time: the first token at once, the others at a decode's pace."""
    from dynamo.llm import ModelInput, ModelRuntimeConfig, ModelType, register_llm
    from dynamo.runtime import DistributedRuntime

    runtime = DistributedRuntime(asyncio.get_running_loop(), "etcd", "tcp", False)
    component = runtime.namespace(os.environ["DYN_NAMESPACE"]).component("prefill" if role == "prefill" else "backend")
    endpoint = component.endpoint("generate")

    async def generate(request, context):
        if role == "prefill":
            yield {"token_ids": [5], "finish_reason": "stop", "disaggregated_params": {"first_gen_tokens": [5]}}
            return
        tokens = request["stop_conditions"]["max_tokens"]
        for i in range(tokens):
            out = {"token_ids": [100 + i]}
            if i + 1 == tokens:
                out["finish_reason"] = "length"
            yield out
            await asyncio.sleep(SPACING)

    kind = ModelType.Prefill if role == "prefill" else ModelType.Chat | ModelType.Completions
    await register_llm(ModelInput.Tokens, kind, endpoint, str(folder), MODEL, runtime_config=ModelRuntimeConfig())
    await endpoint.serve_endpoint(generate, graceful_shutdown=False)


async def ask(session, url, prompt, tokens):
    """Seconds to the first line that holds a choice."""
    payload = {"model": MODEL, "prompt": prompt, "temperature": 0.0, "max_tokens": tokens, "stream": True,
               "stream_options": {"include_usage": True}, "ignore_eos": True}
    first = None
    start = time.perf_counter()
    async with session.post(url, json=payload) as response:
        if response.status != 200:
            raise RuntimeError(f"{url}: {response.status} {await response.text()}")
        async for line in response.content:
            line = line.strip()
            if not line.startswith(b"data: ") or line == b"data: [DONE]":
                continue
            if json.loads(line[6:]).get("choices") and first is None:
                first = time.perf_counter() - start
    return first


def ask_bare(host, port, prompt, tokens):
    """The same by a socket and nothing else: what is left of a client in a language that compiles."""
    body = json.dumps({"model": MODEL, "prompt": prompt, "temperature": 0.0, "max_tokens": tokens, "stream": True,
                       "ignore_eos": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n" \
           f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    start = time.perf_counter()
    with socket.create_connection((host, port)) as connection:
        connection.sendall(head.encode() + body)
        seen = b""
        while b'"choices":[{' not in seen:
            part = connection.recv(65536)
            if not part:
                raise RuntimeError(f"{host}:{port}: {seen[:200]!r}")
            seen += part
        first = time.perf_counter() - start
        while connection.recv(65536):
            pass
    return first


async def one_round(url, prompts, clients, tokens):
    """First tokens of a closed loop of `clients`, each with a connection of its own for every request."""
    import aiohttp

    gate = asyncio.Semaphore(clients)
    timeout = aiohttp.ClientTimeout(total=600)

    async def run(prompt):
        async with gate, aiohttp.ClientSession(timeout=timeout) as session:
            return await ask(session, url, prompt, tokens)

    return await asyncio.gather(*(run(prompt) for prompt in prompts))


async def ready(url):
    import aiohttp

    async with aiohttp.ClientSession() as session:
        for _ in range(300):
            with contextlib.suppress(Exception):
                await ask(session, url, "hello", 2)
                return
            await asyncio.sleep(0.2)
    raise RuntimeError(f"{url}: no answer in a minute")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(args, roles, tokenizer, folder):
    namespace = f"front-{len(roles)}-{os.getpid()}"  # apart from workers that have just ended
    environment = {**os.environ, "DYN_REQUEST_PLANE": "tcp", "DYN_LOG": "error", "DYN_NAMESPACE": namespace}
    port = 18000 + len(roles)
    command = [sys.executable, "-m", "dynamo.frontend", f"--http-port={port}", f"--namespace={namespace}"]
    started = [subprocess.Popen(command, env=environment, stdout=sys.stderr)]
    try:
        for role in roles:
            line = [sys.executable, __file__, "--work", role, "--folder", str(folder)]
            started.append(subprocess.Popen(line, env=environment, stdout=sys.stderr))
        url = f"http://127.0.0.1:{port}/v1/completions"
        asyncio.run(ready(url))
        time.sleep(2)
        draw = random.Random(2)
        cases = [(clients, length) for length in args.lengths for clients in args.clients]
        found = {case: [] for case in cases}
        for number in range(args.rounds + 1):
            for clients, length in cases:
                prompts = [tokenizer.decode(draw.choices(range(300, VOCABULARY), k=length))
                           for _ in range(max(8, 4 * clients))]
                if clients == 0:
                    firsts = [ask_bare("127.0.0.1", port, prompt, args.tokens) for prompt in prompts]
                else:
                    firsts = asyncio.run(one_round(url, prompts, clients, args.tokens))
                if number > 0:  # the first round warms up
                    found[clients, length] += firsts
        for (clients, length), firsts in found.items():
            yield {**SAMPLE, "variant": "prompts apart" if len(roles) > 1 else "one worker", "clients": clients,
                   "prompt_tokens": length, "value": round(1e3 * statistics.median(firsts), 2),
                   "low": round(1e3 * percentile(firsts, 0.1), 2), "high": round(1e3 * percentile(firsts, 0.9), 2),
                   "requests": len(firsts), "unit": "ms"}
    finally:
        for process in started:
            process.kill()
            process.wait()


def tokeniser_line(tokenizer, lengths):
    draw = random.Random(3)
    per_token = []
    for length in lengths:
        for _ in range(30):
            prompt = tokenizer.decode(draw.choices(range(300, VOCABULARY), k=length))
            start = time.perf_counter()
            found = len(tokenizer.encode(prompt).ids)
            per_token.append((time.perf_counter() - start) / found)
    return {**SAMPLE, "variant": "tokeniser", "value": round(1e6 * statistics.median(per_token), 3), "unit": "us"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, nargs="+", default=[0, 1, 4],
                        help="0: one, by a bare socket")
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 1024, 8192])
    parser.add_argument("--tokens", type=int, default=32, help="of an answer")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        asyncio.run(work(args.work, args.folder))
        return
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = make_model(Path(folder))
        print(json.dumps({"record": "conditions", "program": "front", "host": model, "cores": os.cpu_count(),
                          "python": platform.python_version(), "ai-dynamo-runtime": version("ai-dynamo-runtime"),
                          "aiohttp": version("aiohttp"), "date": time.strftime("%Y-%m-%d")}), flush=True)
        print(json.dumps(tokeniser_line(tokenizer, args.lengths)), flush=True)
        for roles in [["both"], ["prefill", "decode"]]:
            for line in measure(args, roles, tokenizer, Path(folder)):
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
