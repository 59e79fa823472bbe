#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Serves models of random weights with vLLM itself on one GPU, and times tokens as clients see them.
"""Closed loops of random prompts against vLLM's engine in its own process, without a server.

A model is a published configuration, whole where it fits on one GPU, else one rank of a group that
splits its layers' width: as many heads, and as wide, as such a rank has, with fewer layers, so that
all its kernels run and none of its collectives. Weights are random: vLLM makes them (load_format
"dummy"), and experts are chosen about evenly. Lines on standard output: `engine` says what was run
with, `loop` what a closed loop of clients saw. Needs vLLM; README.md says of which release.

With --profile, PyTorch's profiler looks at decode steps of batches that stay as they are, and at
one prompt alone, after the loops. `steps` says how long a step took before the profiler was there.
vllm_kernels.py reads such traces.
"""
import argparse
import asyncio
import datetime
import fcntl
import json
import os
import statistics
import sys
import tempfile
import time

BLOCKS = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic",
          "fmt": "e4m3"}
TENSOR = {"quant_method": "fp8", "activation_scheme": "dynamic"}


def text_only(**keys):
    return {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, **keys}


# name: (configuration class, architecture, its fields, format of weights)
MODELS = {
    "llama3.1-8b": ("LlamaConfig", "LlamaForCausalLM", text_only(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, vocab_size=128256, max_position_embeddings=131072), None),
    "llama3.3-70b": ("LlamaConfig", "LlamaForCausalLM", text_only(
        hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64,
        num_key_value_heads=8, vocab_size=128256, max_position_embeddings=131072), TENSOR),
    "qwen3-30b-a3b": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", text_only(
        hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_hidden_layers=48,
        num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128,
        num_experts_per_tok=8, norm_topk_prob=True, vocab_size=151936,
        max_position_embeddings=40960), None),
    "gpt-oss-120b": ("GptOssConfig", "GptOssForCausalLM", text_only(
        hidden_size=2880, intermediate_size=2880, num_hidden_layers=36, num_attention_heads=64,
        num_key_value_heads=8, head_dim=64, num_local_experts=128, num_experts_per_tok=4,
        sliding_window=128, vocab_size=201088, max_position_embeddings=131072),
        {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
            "lm_head"]}),
    "gemma3-12b": ("Gemma3TextConfig", "Gemma3ForCausalLM", text_only(
        hidden_size=3840, intermediate_size=15360, num_hidden_layers=48, num_attention_heads=16,
        num_key_value_heads=8, head_dim=256, query_pre_attn_scalar=256, sliding_window=1024,
        vocab_size=262208, max_position_embeddings=131072), None),
    "mixtral-8x7b": ("MixtralConfig", "MixtralForCausalLM", text_only(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, num_local_experts=8, num_experts_per_tok=2, vocab_size=32000,
        max_position_embeddings=32768), None),
    "deepseek-v2-lite": ("DeepseekV2Config", "DeepseekV2ForCausalLM", text_only(
        hidden_size=2048, intermediate_size=10944, moe_intermediate_size=1408,
        num_hidden_layers=27, num_attention_heads=16, num_key_value_heads=16, n_shared_experts=2,
        n_routed_experts=64, num_experts_per_tok=6, n_group=1, topk_group=1,
        first_k_dense_replace=1, kv_lora_rank=512,
        q_lora_rank=None, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128,
        vocab_size=102400, max_position_embeddings=163840), None),
    "olmo2-7b": ("Olmo2Config", "Olmo2ForCausalLM", text_only(
        hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=32, vocab_size=100352, max_position_embeddings=4096), None),
    "phi-3-medium": ("Phi3Config", "Phi3ForCausalLM", text_only(
        hidden_size=5120, intermediate_size=17920, num_hidden_layers=40, num_attention_heads=40,
        num_key_value_heads=10, sliding_window=2047, vocab_size=32064,
        max_position_embeddings=4096), None),
    "smollm2-1.7b": ("LlamaConfig", "LlamaForCausalLM", text_only(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=24, num_attention_heads=32,
        num_key_value_heads=32, tie_word_embeddings=True, vocab_size=49152,
        max_position_embeddings=8192), None),
    "glm-4.7-flash": ("Glm4MoeLiteConfig", "Glm4MoeLiteForCausalLM", text_only(
        hidden_size=2048, intermediate_size=10240, moe_intermediate_size=1536,
        num_hidden_layers=47, num_attention_heads=20, num_key_value_heads=20, n_shared_experts=1,
        n_routed_experts=64, num_experts_per_tok=4, n_group=1, topk_group=1,
        first_k_dense_replace=1, kv_lora_rank=512,
        q_lora_rank=768, qk_rope_head_dim=64, qk_nope_head_dim=192, v_head_dim=256,
        vocab_size=154880, max_position_embeddings=202752), None),
    "qwen2-57b-a14b": ("Qwen2MoeConfig", "Qwen2MoeForCausalLM", text_only(
        hidden_size=3584, intermediate_size=18944, moe_intermediate_size=2560,
        shared_expert_intermediate_size=20480, num_hidden_layers=28, num_attention_heads=28,
        num_key_value_heads=4, num_experts=64, num_experts_per_tok=8, vocab_size=151936,
        max_position_embeddings=65536), None),
    "qwen3-next-80b-a3b": ("Qwen3NextConfig", "Qwen3NextForCausalLM", text_only(
        max_position_embeddings=40960), BLOCKS),
    "glm-5 rank of 8": ("GlmMoeDsaConfig", "GlmMoeDsaForCausalLM", text_only(
        num_hidden_layers=20, num_attention_heads=8, num_key_value_heads=8, intermediate_size=1536,
        moe_intermediate_size=256, vocab_size=19360), BLOCKS),
    "deepseek-r1 rank of 8": ("DeepseekV3Config", "DeepseekV3ForCausalLM", text_only(
        num_hidden_layers=20, num_attention_heads=16, num_key_value_heads=16,
        intermediate_size=2304, moe_intermediate_size=256, vocab_size=16160,
        max_position_embeddings=40960), BLOCKS),
}
# (tokens of a prompt, of an answer, clients, requests), what matters first.
LOOPS = [(1024, 256, 1, 3), (8192, 128, 1, 4), (1024, 256, 64, 256), (8192, 256, 16, 64),
         (1024, 256, 8, 32), (1024, 256, 256, 768), (1024, 1024, 32, 64), (4096, 256, 4, 16),
         (16384, 128, 4, 12), (128, 512, 128, 256)]
# (sequences of a step, tokens of each before it) that a profiler looks at, and a prompt alone.
PROFILED = [(1, 1000), (8, 1000), (64, 1000), (16, 8000)]
PROMPT = 7500


def save_model(name, folder):
    import transformers
    kind, architecture, fields, weights = MODELS[name]
    config = getattr(transformers, kind)(**fields)
    config.architectures = [architecture]
    config.dtype = "bfloat16"
    if weights is not None:
        config.quantization_config = weights
    config.save_pretrained(folder)
    return config


class Clients:
    """So many at once; each sends its next request as soon as its last answer ended."""

    def __init__(self, engine, params, vocab, seed):
        import random
        self.engine, self.params, self.vocab = engine, params, vocab
        self.random = random.Random(seed)
        self.times = []

    async def ask(self, number, prompt, answer):
        tokens = [self.random.randrange(3, self.vocab) for _ in range(prompt)]
        sent = time.perf_counter()
        first = last = None
        count = 0
        params = self.params(max_tokens=answer, min_tokens=answer, ignore_eos=True,
                             temperature=1.0, detokenize=False)
        async for out in self.engine.generate({"prompt_token_ids": tokens}, params, str(number)):
            last = time.perf_counter()
            first = first or last
            count = len(out.outputs[0].token_ids) or count
        self.times.append((sent, first, last, prompt, answer))

    async def steady(self, batch, context, look):
        """So many answers at once, of which none begins or ends while look(count) runs: it awaits
        count(n), which returns the times at which n more tokens of the first answer came."""
        arrived, begun = [], [0] * batch

        async def answer(i):
            tokens = [self.random.randrange(3, self.vocab) for _ in range(context)]
            params = self.params(max_tokens=480, ignore_eos=True, temperature=1.0,
                                 detokenize=False)
            name = f"steady.{batch}.{context}.{i}.{time.time()}"
            async for _ in self.engine.generate({"prompt_token_ids": tokens}, params, name):
                begun[i] += 1
                if i == 0:
                    arrived.append(time.perf_counter())

        async def count(more):
            here = len(arrived)
            while len(arrived) < here + more:
                if any(x.done() for x in answers):
                    raise RuntimeError("an answer ended")
                await asyncio.sleep(0.001)
            return arrived[here:here + more]

        answers = [asyncio.create_task(answer(i)) for i in range(batch)]
        try:
            while min(begun) < 8:
                if any(x.done() for x in answers):
                    raise RuntimeError("not all at once: they do not fit in the cache")
                await asyncio.sleep(0.001)
            await look(count)
        finally:
            for task in answers:
                task.cancel()
            await asyncio.gather(*answers, return_exceptions=True)

    async def run(self, prompt, answer, clients, requests):
        # Lengths between 0.8 of what is named and all of it, as InferenceX draws them.
        todo = [(self.random.randint(int(0.8 * prompt), prompt),
                 self.random.randint(int(0.8 * answer), answer)) for _ in range(requests)]
        self.times, waiting = [], list(enumerate(todo))

        async def client():
            while waiting:
                number, (p, a) = waiting.pop(0)
                await self.ask(f"{prompt}.{answer}.{clients}.{number}.{time.time()}", p, a)

        start = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        return time.perf_counter() - start


def summary(times, lasted):
    ttft = sorted(f - s for s, f, _, _, _ in times)
    tpot = sorted((last - f) / (a - 1) for _, f, last, _, a in times)
    return {"requests": len(times), "duration_s": lasted,
            "mean_ttft_s": statistics.mean(ttft), "median_ttft_s": statistics.median(ttft),
            "p99_ttft_s": ttft[min(len(ttft) - 1, int(0.99 * len(ttft)))],
            "mean_tpot_s": statistics.mean(tpot), "median_tpot_s": statistics.median(tpot),
            "p99_tpot_s": tpot[min(len(tpot) - 1, int(0.99 * len(tpot)))],
            "output_tokens": sum(a for *_, a in times), "prompt_tokens": sum(t[3] for t in times)}


def line(record, **keys):
    rounded = {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in keys.items()}
    print(json.dumps({"record": record, **rounded}), flush=True)


async def profile(clients, name, most):
    async def look(count):
        times = await count(80)
        gaps = sorted(b - a for a, b in zip(times, times[1:]))
        line("steps", model=name, batch=batch, context=context, median_s=statistics.median(gaps),
             mean_s=(times[-1] - times[0]) / len(gaps), low_s=gaps[len(gaps) // 10],
             high_s=gaps[-1 - len(gaps) // 10])
        await clients.engine.start_profile()
        try:
            await count(16)
        finally:
            await clients.engine.stop_profile()

    for batch, context in PROFILED:
        context = min(context, most - 512)
        try:
            await clients.steady(batch, context, look)
        except RuntimeError as error:
            print(f"batch {batch} of {context} tokens: {error}", file=sys.stderr)
    await asyncio.sleep(0.5)
    await clients.engine.start_profile()
    await clients.run(min(PROMPT, most - 16), 2, 1, 1)
    await clients.engine.stop_profile()


async def turn(options):
    """Engines that start beside each other on one GPU serve one after the other, once all stand."""
    if not options.beside:
        return None
    folder, count = options.beside.rsplit(":", 1)
    open(os.path.join(folder, f"{os.getpid()}.stands"), "w").close()
    while sum(x.endswith(".stands") for x in os.listdir(folder)) < int(count):
        await asyncio.sleep(0.2)
    lock = open(os.path.join(folder, "lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


async def serve(name, options):
    import torch
    import vllm
    from vllm import SamplingParams
    from vllm.config import ProfilerConfig
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM
    begun = time.time()
    folder = tempfile.mkdtemp()
    config = save_model(name, folder)
    extra = json.loads(options.engine)
    profiler = ProfilerConfig() if not options.profile else ProfilerConfig(
        profiler="torch", torch_profiler_dir=os.path.abspath(options.profile),
        torch_profiler_with_stack=False, torch_profiler_dump_cuda_time_total=False,
        ignore_frontend=True)
    most = min(20480, config.max_position_embeddings)
    settings = {"max_model_len": most, "max_num_batched_tokens": 8192, "max_num_seqs": 1024,
                "enable_prefix_caching": False, "gpu_memory_utilization": 0.9, **extra}
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(
        model=folder, skip_tokenizer_init=True, load_format="dummy", dtype="bfloat16",
        disable_log_stats=True, profiler_config=profiler, **settings))
    line("engine", model=name, vllm=vllm.__version__, torch=torch.__version__,
         device=torch.cuda.get_device_name(), settings=settings, started_s=time.time() - begun,
         date=datetime.date.today().isoformat())
    lock = await turn(options)
    begun = time.time() if lock else begun
    clients = Clients(engine, SamplingParams, config.vocab_size, 1)
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
    if options.profile:
        await profile(clients, name, most)
    engine.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--seconds", type=float, default=150, help="loops left then are not run")
    parser.add_argument("--engine", default="{}", help="more of vLLM's settings, as JSON")
    parser.add_argument("--loops", default="", help="[[prompt, answer, clients, requests], ...]")
    parser.add_argument("--profile", default="", help="folder for traces: profile as well")
    parser.add_argument("--beside", default="", help="FOLDER:N: start beside others, N in all")
    options = parser.parse_args()
    os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
    asyncio.run(serve(options.model, options))
    sys.stdout.flush()
    os._exit(0)  # engine processes may linger


if __name__ == "__main__":
    main()
