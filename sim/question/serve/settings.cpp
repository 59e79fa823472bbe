// SPDX-License-Identifier: Apache-2.0
// Lists the settings of serve.
#include "sim/question/serve/serve.h"

namespace orrery {

const std::vector<Setting>& serve_settings() {
  using enum SettingKind;
  constexpr const char* model = "Model, machine and engine";
  constexpr const char* layout = "Deployment";
  constexpr const char* spec = "Tokens guessed ahead";
  constexpr const char* limits = "Limits of the engine";
  constexpr const char* traffic = "Traffic";
  static const std::vector<Setting> all = {
      {"model", text, model, "model name, file, Hugging Face config.json or its folder",
       SettingOf::both, "catalog model"},
      {"cluster", text, model, "cluster name or file", SettingOf::both, "catalog cluster"},
      {"gpus", integer, model, "accelerators; default: those of the engines"},
      {"stack", text, model, "serving engine, name or name@release: vllm, sglang, trtllm",
       SettingOf::both, "catalog stack"},
      {"precision", text, model, "of the checkpoint: bf16, fp8-current, fp8-blockwise, nvfp4"},
      {"cache", text, model, "format of keys and values: bf16 or fp8", SettingOf::both, "bf16 fp8"},
      {"engines", text, layout, "engines that do all: TP8, 2xTP4, 4xTP4PP2, 2xDP8EP8"},
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
       " 0.9:0.8:0.6; default: as measured for the model"},
      {"token_budget", integer, limits, "rows of a step at most"},
      {"max_sequences", integer, limits, "sequences that run on a rank at once"},
      {"chunk", integer, limits, "SGLang: tokens of a prompt in a step at most"},
      {"block_tokens", integer, limits, "tokens of a block of keys and values"},
      {"memory_share", number, limits, "of the memory that weights and cache may take"},
      {"prefix_cache", on_off, limits, "whether prompts that begin alike are computed once"},
      {"arrivals", text, traffic,
       "poisson:12/s, gamma:12/s:3 (bursts), offline, trace or trace:2 (twice as fast)"},
      {"concurrency", integer, traffic, "clients that each wait for their answer (closed loop)"},
      {"requests", integer, traffic, "default: ten for each client, 1,000 else, a trace's all"},
      {"warmup", integer, traffic, "first requests that are not counted"},
      {"isl", text, traffic,
       "tokens of a prompt: 1024, uniform:100:2000, ratio:8192:0.8, "
       "lognormal:500:1.2:32768"},
      {"osl", text, traffic, "tokens of an answer, as isl"},
      {"trace", text, traffic, "name or file of a trace: its lengths, prefixes and arrivals"},
      {"slo", text, traffic, "what requests are promised: ttft.p95=2s,tpot.p95=30ms"},
  };
  return all;
}

}  // namespace orrery
