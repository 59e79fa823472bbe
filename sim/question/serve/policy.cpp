// SPDX-License-Identifier: Apache-2.0
// Reads admission, preemption, mixing, and tiers of the cache.
#include "sim/question/serve/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/text/lines.h"
#include "sim/base/units/units.h"

namespace orrery {
namespace {

constexpr std::size_t most_cache_tiers = 3;  // below the device's memory

constexpr const char* tier_form =
    "NAME:CAPACITY:BANDWIDTH of a GPU's share, such as host:256GiB:50GB/s,nvme:2TB:6GB/s";

CacheTier tier_of(const std::string& text, const JsonValue& at) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos || first == 0)
    at.fail(tier_form, fmt::format("\"{}\"", text));
  try {
    return {.name = text.substr(0, first),
            .capacity = parse<Bytes>(text.substr(first + 1, second - first - 1)),
            .bandwidth = parse<BytesPerSecond>(text.substr(second + 1))};
  } catch (const Error& error) {
    at.fail(tier_form, fmt::format("\"{}\"", text));
  }
}

std::vector<CacheTier> tiers_of(const JsonValue& at) {
  std::vector<CacheTier> tiers;
  const std::string text = at.text();
  for (const std::string_view part : fields_of(text, ',')) {
    tiers.push_back(tier_of(std::string(part), at));
    if (!(tiers.back().bandwidth.si() > 0)) at.fail("a bandwidth above 0");
  }
  if (tiers.size() > most_cache_tiers)
    at.fail(fmt::format("at most {} tiers below the device's memory", most_cache_tiers));
  return tiers;
}

// Settings of some schedulers alone.
struct SchedulerSetting {
  const char* key;
  std::vector<SchedulerKind> of;
  const char* whose;
};

const std::vector<SchedulerSetting>& scheduler_settings() {
  using enum SchedulerKind;
  static const std::vector<SchedulerSetting> all = {
      {"chunk", {sglang}, "SGLang's scheduler; elsewhere --token-budget bounds a step's prompts"},
      {"balance_steps", {trtllm}, "TensorRT-LLM's scheduler"},
      {"batch_wait_steps", {trtllm}, "TensorRT-LLM's scheduler"},
      {"batch_wait_tokens", {trtllm}, "TensorRT-LLM's scheduler"},
      {"long_prefill", {vllm, simple}, "vLLM's scheduler"},
      {"mixed_steps", {sglang}, "SGLang's scheduler; the others always mix"},
      {"capacity", {trtllm}, "TensorRT-LLM's scheduler"}};
  return all;
}

bool knows(SchedulerKind kind, const SchedulerSetting& setting) {
  return std::find(setting.of.begin(), setting.of.end(), kind) != setting.of.end();
}

// The setting, where the policy's scheduler knows it.
std::optional<JsonValue> known(const JsonValue& s, const EnginePolicy& policy,
                               std::string_view key) {
  for (const SchedulerSetting& setting : scheduler_settings())
    if (setting.key == key && !knows(policy.scheduler, setting)) return std::nullopt;
  return s.find(key);
}

}  // namespace

std::vector<UnusedSetting> unused_settings(const JsonValue& s, const ServiceCase& asked) {
  std::vector<UnusedSetting> unused;
  for (const SchedulerSetting& setting : scheduler_settings())
    if (s.has(setting.key) && !knows(asked.stack.serving.policy.scheduler, setting))
      unused.push_back({setting.key, fmt::format("nothing with {}: it is a setting of {}",
                                                 asked.stack.name, setting.whose)});
  const auto has = [&](const auto& holds) {
    return holds(asked.engines.layout) || (asked.decode && holds(asked.decode->layout));
  };
  const auto add = [&](const char* key, bool used, const char* expected) {
    const bool said = std::any_of(unused.begin(), unused.end(),
                                  [&](const UnusedSetting& one) { return one.key == key; });
    if (s.has(key) && !used && !said) unused.push_back({key, expected});
  };
  add("balance_steps", has([](const EngineLayout& l) { return l.attention_dp > 1; }),
      "engines with attention DP, such as DP8EP8: others have no ranks that wait for each other");
  constexpr const char* no_ranks = "engines without attention DP: those with it have balance_steps";
  const bool waits = !has([](const EngineLayout& l) { return l.attention_dp > 1; });
  add("batch_wait_steps", waits, no_ranks);
  add("batch_wait_tokens", waits, no_ranks);
  // Prompts wait where both are above 0.
  const BatchWait& wait = asked.stack.serving.policy.batch_wait;
  add("batch_wait_steps", wait.steps == 0 || wait.tokens > 0,
      "batch_wait_tokens beside it: the share of a step's tokens that ends the wait");
  add("batch_wait_tokens", wait.tokens == 0 || wait.steps > 0,
      "batch_wait_steps beside it: the steps that prompts wait for at most");
  add("rank_choice", has([](const EngineLayout& l) { return l.attention_dp * l.pp > 1; }),
      "engines with attention DP, such as DP8EP8: others have no ranks to choose from");
  const ServingHost& host = asked.stack.serving.host;
  add("frontend", host.request_front.get() > Seconds(0) || host.dynamo_front.get() > Seconds(0),
      "an engine behind a server: this one takes requests in its own process");
  return unused;
}

void read_policy(const JsonValue& s, EnginePolicy& policy) {
  const auto count = [](const JsonValue& at) { return at.integer(0, std::int64_t{1} << 30); };
  if (const auto v = s.find("queue_limit")) policy.queue_limit = count(*v);
  if (const auto v = s.find("tiers")) policy.tiers = tiers_of(*v);
  if (const auto v = s.find("preemption")) {
    policy.preemption = preemption_text.from(*v);
    if (policy.preemption == Preemption::swap && policy.tiers.empty())
      v->fail("tiers that take what makes room (--tiers)");
  }
  if (const auto v = s.find("watermark")) {
    policy.watermark = v->number();
    if (!(policy.watermark >= 0) || policy.watermark >= 1) v->fail("at least 0, below 1");
  }
  if (const auto v = known(s, policy, "chunk")) policy.chunk = count(*v);
  if (const auto v = known(s, policy, "balance_steps")) policy.balance_steps = count(*v);
  if (const auto v = known(s, policy, "batch_wait_steps")) policy.batch_wait.steps = count(*v);
  if (const auto v = known(s, policy, "batch_wait_tokens")) {
    policy.batch_wait.tokens = v->share();
  }
  if (const auto v = known(s, policy, "long_prefill")) policy.long_prefill = count(*v);
  if (const auto v = known(s, policy, "mixed_steps")) policy.mixed_steps = v->boolean();
  if (const auto v = known(s, policy, "capacity")) policy.capacity = capacity_policy_text.from(*v);
  if (const auto v = s.find("rank_choice")) policy.rank_choice = rank_choice_text.from(*v);
}

void check_units(const JsonValue& s, const Traffic& traffic, const EnginePolicy& policy) {
  const std::int64_t unit = traffic.trace ? traffic.trace->hash_tokens : 0;
  if (unit == 0 || !policy.prefix_cache || unit % policy.block_tokens == 0) return;
  const std::string expected =
      fmt::format("a divisor of {}, the tokens that requests of the trace share", unit);
  if (s.has("block_tokens")) s.at("block_tokens").fail(expected);
  throw Error({.file = "--block-tokens",
               .path = "",
               .found = fmt::format("{}", policy.block_tokens),
               .expected = expected});
}

}  // namespace orrery
