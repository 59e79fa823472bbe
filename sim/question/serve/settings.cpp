// SPDX-License-Identifier: Apache-2.0
// Lists the settings of serve.
#include "sim/question/serve/serve.h"

namespace orrery {

namespace {

std::vector<Setting> of_engines() {
  using enum SettingKind;
  constexpr const char* model = "Model, machine and engine";
  constexpr const char* layout = "Deployment";
  constexpr const char* spec = "Tokens guessed ahead";
  constexpr const char* limits = "Limits of the engine";
  return {
      {"model", text, model, "model name, file, Hugging Face config.json or its folder",
       SettingOf::both, "catalog model"},
      {"cluster", text, model, "cluster name or file", SettingOf::both, "catalog cluster"},
      {"gpus", integer, model, "accelerators that there are; the engines use what they need"},
      {"stack", text, model, "serving engine, name or name@release: vllm, sglang, trtllm",
       SettingOf::both, "catalog stack"},
      {"precision", text, model,
       "of the checkpoint: bf16, fp16, fp8-delayed, fp8-current, fp8-blockwise, mxfp8, nvfp4, "
       "mxfp4, int4, int8"},
      {"cache", text, model, "format of keys and values: bf16, fp8 or nvfp4", SettingOf::both,
       "bf16 fp8 nvfp4"},
      {"engines", text, layout, "engines that do all: TP8, 2xTP4, 4xTP4PP2, 2xDP8EP8, DP32EP32+32"},
      {"prefill", text, layout, "engines of prompts alone, where others decode: 2xTP8"},
      {"decode", text, layout, "engines that decode what --prefill computed: 2xDP8EP8"},
      {"router", text, layout,
       "which engine a request goes to: round-robin, random, least-requests,"
       " least-tokens, power-of-two, prefix, session, class"},
      {"spec", text, spec,
       "how tokens are guessed ahead, and how many a step: mtp:2, eagle3:3,"
       " draft:llama3.2-1b:4, ngram:4"},
      {"accept", text, spec,
       "chance that a guessed token is right once those before it were: 0.8, or by position"
       " 0.9:0.8:0.6; or a text of which it was measured: random-1k-1k; default: as measured for "
       "the model"},
      {"token_budget", integer, limits, "rows of a step at most"},
      {"max_sequences", integer, limits,
       "sequences that run on a rank at once; default: the stack's, or as many as have states"},
      {"chunk", integer, limits, "SGLang: tokens of a prompt in a step at most"},
      {"balance_steps", integer, limits,
       "TensorRT-LLM: steps that prompts of a rank wait for those of other attention-DP ranks"},
      {"batch_wait_steps", integer, limits,
       "TensorRT-LLM: steps that prompts wait for more of them while others decode"},
      {"batch_wait_tokens", number, limits,
       "TensorRT-LLM: the share of a step's rows at which they wait no longer"},
      {"block_tokens", integer, limits, "tokens of a block of keys and values"},
      {"memory_share", number, limits, "of the memory that weights and cache may take"},
      {"prefix_cache", on_off, limits, "whether prompts that begin alike are computed once"},
      {"max_context", integer, limits,
       "tokens of a prompt and its answer at most; longer ones are rejected; default: the model's"},
      {"queue_limit", integer, limits, "requests that may wait on a rank; more are rejected"},
      {"frontend", text, limits, "who takes requests in: the engine's own server, or Dynamo's",
       SettingOf::both, "engine dynamo"},
      {"eager", text, limits,
       "engines whose kernels Python launches one by one: no graphs, nothing compiled",
       SettingOf::both, "none prompts all"},
      {"tiers", text, limits,
       "caches below the GPU's memory, a GPU's share of each: host:256GiB:50GB/s,nvme:2TB:6GB/s"},
      {"preemption", text, limits, "what makes room is computed again or goes to the first tier",
       SettingOf::both, "recompute swap"},
      {"watermark", number, limits, "share of the blocks that new requests leave free"},
      {"long_prefill", integer, limits, "vLLM: tokens of a step that a prompt gets at most"},
      {"mixed_steps", on_off, limits, "SGLang: decodes join the steps of prompts"},
      {"capacity", text, limits, "TensorRT-LLM: no-evict or max-utilisation", SettingOf::both,
       "no-evict max-utilisation"},
      {"rank_choice", text, limits, "which rank of an engine takes a request, with DP attention",
       SettingOf::both, "round-robin least-requests"},
  };
}

std::vector<Setting> of_traffic() {
  using enum SettingKind;
  constexpr const char* traffic = "Traffic";
  return {
      {"arrivals", text, traffic,
       "poisson:12/s, gamma:12/s:3 (bursts), daily:8h:2/s:16h:12/s, offline, trace or trace:2 "
       "(twice"
       " as fast)"},
      {"concurrency", integer, traffic, "clients that each wait for their answer (closed loop)"},
      {"requests", integer, traffic, "default: ten for each client, 1,000 else, a trace's all"},
      {"warmup", integer, traffic, "first requests that are not counted"},
      {"isl", text, traffic,
       "tokens of a prompt: 1024, uniform:100:2000, ratio:8192:0.8, "
       "lognormal:500:1.2:32768"},
      {"osl", text, traffic, "tokens of an answer, as isl"},
      {"ignore_eos", on_off, traffic,
       "clients take no end of text for an answer, as benchmarks do: SGLang without a prefix cache "
       "then starts what finds room until its end"},
      {"trace", text, traffic, "name or file of a trace: its lengths, prefixes and arrivals"},
      {"classes", json, traffic,
       "kinds of requests: [{\"name\": \"chat\", \"share\": 0.8, \"isl\": 500, \"osl\": 200, "
       "\"priority\": 0}, ..]; lower priorities go first"},
      {"turns", text, traffic,
       "turns of a conversation, as isl; --requests are conversations then"},
      {"turn_tokens", text, traffic, "tokens that each later turn adds to the prompt, as isl"},
      {"think_time", text, traffic, "mean time between an answer and the next turn: 20s"},
      {"shared_prefix", integer, traffic, "tokens with which all prompts begin: a system prompt"},
      {"slo", text, traffic, "what requests are promised: ttft.p95=2s,tpot.p95=30ms"},
      {"for", text, traffic,
       "a load to be met, 50/s or gamma:50/s:3: of the points that meet it and keep --slo the one "
       "with the least GPUs"},
      {"gpu_hour_price", number, traffic, "USD per accelerator and hour"},
  };
}

}  // namespace

const std::vector<Setting>& serve_settings() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> both = of_engines();
    for (const Setting& setting : of_traffic()) both.push_back(setting);
    return both;
  }();
  return all;
}

}  // namespace orrery
