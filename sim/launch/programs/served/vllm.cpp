// SPDX-License-Identifier: Apache-2.0
// Reads command lines of vLLM's server.
#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "sim/launch/programs/served/served_reader.h"

namespace orrery {
namespace {

// vLLM takes "32k" and "1M" (thousands) and "32K" (1,024) for tokens.
std::int64_t tokens_of(const Said& said) {
  Said digits = said;
  std::int64_t unit = 1;
  if (said.value.is_string() && !said.value.text().empty()) {
    std::string text = said.value.text();
    const char last = text.back();
    if (last == 'k' || last == 'm') unit = last == 'k' ? 1'000 : 1'000'000;
    if (last == 'K' || last == 'M') unit = last == 'K' ? 1'024 : 1'048'576;
    if (unit > 1) text.pop_back();
    digits.value = text;
  }
  return whole_of(digits, 1, std::int64_t{1} << 30) * unit;
}

}  // namespace

// vLLM's objects of settings, as JSON.
SortedJson ServedReader::object_of(const Said& said) const {
  SortedJson config = said.value;
  if (config.is_string()) {
    try {
      config = JsonValue::parse(config.text(), said.place()).raw();
    } catch (const Error&) {
      fail(said, "a JSON object");
    }
  }
  if (!config.is_object()) fail(said, "a JSON object");
  return config;
}

void ServedReader::read_balancer(const Said& said) {
  const SortedJson config = object_of(said);
  const auto count = config.find("num_redundant_experts");
  if (count == config.end()) return reading_.without_effect(said, "it names no copies of experts");
  if (!count->is_number_integer() || count->get<std::int64_t>() < 0)
    fail(said, "num_redundant_experts, a whole number");
  if (!is_on("enable_eplb"))
    return reading_.without_effect(said, "ranks of experts are not evened out");
  copies_ = count->get<std::int64_t>();
  reading_.part_of(said, "engines");
}

void ServedReader::read_guessing(const Said& said) {
  const SortedJson config = object_of(said);
  const auto text = [&](const char* key) {
    const auto at = config.find(key);
    return at != config.end() && at->is_string() ? at->text() : std::string();
  };
  const auto count = config.find("num_speculative_tokens");
  if (count == config.end() || !count->is_number_integer())
    fail(said, "num_speculative_tokens, a whole number");
  const std::int64_t tokens = count->get<std::int64_t>();
  const std::string method = text("method");
  if (method == "ngram" || method == "eagle3")
    return reading_.set(said, "spec", fmt::format("{}:{}", method, tokens));
  if (method.ends_with("mtp")) return reading_.set(said, "spec", fmt::format("mtp:{}", tokens));
  const auto entry = model_of_name(text("model"));
  if (method.empty() && entry)
    return reading_.set(said, "spec", fmt::format("draft:{}:{}", *entry, tokens));
  reading_.not_understood(said,
                          "a way of guessing that is not predicted, or a model that the "
                          "catalogue does not have: predicted without");
}

void ServedReader::vllm_rules() {
  Rules& r = s_.rules;
  s_.keep_all({"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
               "enable_expert_parallel", "enable_eplb", "eplb_config"});
  r["_tp"] = s_.keep("tensor_parallel_size");
  r["_pp"] = s_.keep("pipeline_parallel_size");
  r["_dp"] = s_.keep("data_parallel_size");
  r["max_model_len"] = [this](const Said& said) {
    if (value_text(said.value) == "auto" || value_text(said.value) == "-1")
      return reading_.without_effect(said, "the model says it");
    reading_.set(said, "max_context", tokens_of(said));
  };
  r["max_num_batched_tokens"] = [this](const Said& said) {
    reading_.set(said, "token_budget", tokens_of(said));
  };
  r["max_num_seqs"] = s_.whole("max_sequences");
  r["block_size"] = s_.whole("block_tokens");
  r["gpu_memory_utilization"] = memory_share();
  r["long_prefill_token_threshold"] = s_.whole("long_prefill");
  r["enable_prefix_caching"] = [this](const Said& said) {
    reading_.set(said, "prefix_cache", truth_of(said));
  };
  r["no_enable_prefix_caching"] = [this](const Said& said) {
    reading_.set(said, "prefix_cache", !truth_of(said));
  };
  r["enable_chunked_prefill"] = cut_prompts();
  r["no_enable_chunked_prefill"] = [this](const Said& said) {
    reading_.not_understood(said, "prompts that are not cut: predicted cut");
  };
  r["speculative_config"] = [this](const Said& said) { read_guessing(said); };
  r["kv_offloading_size"] = [this](const Said& said) {
    reading_.not_understood(said,
                            "a cache below the GPU's memory: --tiers says its size and speed");
  };
  r["enforce_eager"] = eager();
}

void ServedReader::vllm(const GivenWords& given) {
  common_rules();
  vllm_rules();
  reading_.apply(given.said, s_.rules, flag_key);
  finish(given);
  const std::int64_t tp = count("tensor_parallel_size"), pp = count("pipeline_parallel_size"),
                     dp = count("data_parallel_size");
  const bool spread = is_on("enable_expert_parallel") && has_experts();
  if (const Said* said = s_.kept("enable_eplb")) {
    if (truth_of(*said) && spread) copies_ = 0;
    reading_.part_of(*said, "engines");
  }
  if (const Said* said = s_.kept("eplb_config")) read_balancer(*said);
  // Of a model without experts each data-parallel rank is an engine of its own.
  const bool apart = !has_experts();
  engines(tp, pp, apart ? 1 : dp, spread ? tp * dp : 1, apart ? dp : 1);
}

void read_vllm(GivenReading& reading, const GivenWords& given) {
  ServedReader(reading).vllm(given);
}

}  // namespace orrery
