// SPDX-License-Identifier: Apache-2.0
// Lists settings of serving engines, and finds the program that is told them.
#include "sim/launch/serving/engine.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/flag_writer.h"
#include "sim/launch/serving/engine_writer.h"

namespace orrery {
namespace {

SortedJson tiers_json(const EnginePolicy& policy) {
  SortedJson tiers = SortedJson::array();
  for (const CacheTier& tier : policy.tiers)
    tiers.push_back(SortedJson(fmt::format("{}:{:.0f}", tier.name, tier.capacity.si())));
  return tiers;
}

}  // namespace

std::int64_t largest_captured(const ServedDeployment& d, const ServedEngine& e) {
  const auto& graphs = d.stack.serving.graphs;
  return graphs.empty() || e.eager ? 0 : graphs.back().to;
}

SortedJson engine_settings(const ServedDeployment& d, const ServedEngine& e) {
  const EngineLayout& l = e.layout;
  const EnginePolicy& p = e.policy;
  SortedJson all = SortedJson::object();
  all["role"] = to_text(e.role);
  all["tp"] = l.tp;
  all["pp"] = l.pp;
  all["attention_dp"] = l.attention_dp;
  all["ep"] = l.ep;
  all["etp"] = l.etp;
  all["expert_copies"] = l.expert_copies ? SortedJson(*l.expert_copies) : SortedJson();
  all["precision"] = to_text(l.precision);
  all["cache"] = to_text(l.cache);
  all["token_budget"] = p.token_budget;
  all["max_sequences"] = p.max_sequences;
  all["chunked_prefill"] = p.chunked_prefill;
  all["chunk"] = p.chunk;
  all["balance_steps"] = p.balance_steps;
  all["batch_wait_steps"] = p.batch_wait.steps;
  all["batch_wait_tokens"] = p.batch_wait.tokens;
  all["block_tokens"] = p.block_tokens;
  all["memory_share"] = d.stack.serving.memory.share;
  all["prefix_cache"] = p.prefix_cache;
  all["max_context"] = d.longest == d.context ? SortedJson() : SortedJson(d.longest);
  all["queue_limit"] = p.queue_limit;
  all["tiers"] = tiers_json(p);
  all["preemption"] = to_text(p.preemption);
  all["watermark"] = p.watermark;
  all["long_prefill"] = p.long_prefill;
  all["mixed_steps"] = p.mixed_steps;
  all["capacity"] = to_text(p.capacity);
  all["rank_choice"] = l.attention_dp > 1 ? to_text(p.rank_choice) : "";
  all["stream_interval"] = p.stream_interval;
  all["receive_interval"] = p.receive_interval;
  all["priorities"] = static_cast<std::int64_t>(p.priorities.size());
  all["graphs"] = largest_captured(d, e);
  all["spec"] =
      d.guessing ? fmt::format("{}:{}", to_text(d.guessing->kind), d.guessing->drafts) : "";
  return all;
}

std::pair<int, int> engine_release(const Stack& stack) {
  return release_number(stack.asked.empty() ? stack.release : stack.asked);
}

std::string engine_program(const Stack& stack) {
  return fmt::format("{} {}", stack.framework, stack.asked.empty() ? stack.release : stack.asked);
}

EngineCommand engine_command(const ServedDeployment& d, const ServedEngine& e,
                             EngineDialect dialect) {
  switch (e.policy.scheduler) {
    case SchedulerKind::vllm:
      return vllm_command(d, e, dialect);
    case SchedulerKind::sglang:
      return sglang_command(d, e);
    case SchedulerKind::trtllm:
      return trtllm_command(d, e, dialect);
    case SchedulerKind::simple:
      break;
  }
  throw Error({.file = "--stack",
               .path = "",
               .found = d.stack.name,
               .expected = "an engine that others have, to be started: vLLM, SGLang or "
                           "TensorRT-LLM"});
}

void EngineWriter::flag(std::string_view key, std::string name, std::string value) {
  if (!key.empty()) covers(key);
  out_.flags.push_back({std::move(name), std::move(value), std::string(key)});
}

void EngineWriter::file(std::string_view key, std::string_view path, const Json& value) {
  if (!key.empty()) covers(key);
  if (out_.file.is_null()) out_.file = Json::object();
  Json* at = &out_.file;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
    at = &(*at)[std::string(path.substr(0, dot))];
    path.remove_prefix(dot + 1);
  }
  (*at)[std::string(path)] = value;
}

void EngineWriter::environment(std::string_view key, std::string name, std::string value) {
  covers(key);
  out_.environment.push_back({std::move(name), std::move(value), std::string(key)});
}

void EngineWriter::missing(std::string_view key, std::string sentence) {
  covers(key);
  out_.missing.push_back({std::string(key), std::move(sentence)});
}

void EngineWriter::lacks(std::string_view key, std::string_view what) {
  missing(key, fmt::format("{} has no flag for {}.", out_.program, what));
}

void EngineWriter::implied(std::string_view key, std::string sentence) {
  covers(key);
  out_.implied.push_back({std::string(key), std::move(sentence)});
}

EngineCommand EngineWriter::finish(const ServedDeployment& d, const ServedEngine& e) && {
  const SortedJson is = engine_settings(d, e);
  const SortedJson plain = engine_settings({.stack = {}}, {});
  for (const auto& [key, value] : is.items())
    if (covered_.count(key) == 0 && value != plain.at(key))
      lacks(key, fmt::format("{} {}", key,
                             value.is_string() ? value.template get<std::string>() : value.dump()));
  return std::move(out_);
}

}  // namespace orrery
