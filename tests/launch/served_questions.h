// SPDX-License-Identifier: Apache-2.0
// Knows how tests ask for the commands of serving engines, and draw engines at random.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include "hw_models/catalog.h"
#include "sim/launch/serving/engine.h"
#include "sim/launch/serving/hosts.h"

namespace orrery {

inline Stack serving_stack(const std::string& name) {
  return load_stack(name,
                    {.architecture = "hopper", .precision = PrecisionRecipe::bf16, .moe = true},
                    data_root() / "workloads/catalog/stacks");
}

// One engine of a stack as it is by itself, of a model with experts and dense layers.
inline ServedDeployment served_by(const std::string& stack, const EngineLayout& layout = {}) {
  ServedDeployment d{.name = "some-model.1b",
                     .title = "Some Model 1B",
                     .checkpoint = "some/Model-1B",
                     .experts = true,
                     .dense = true,
                     .context = 131072,
                     .longest = 131072,
                     .machine = "a cluster",
                     .resource = "nvidia.com/gpu",
                     .stack = serving_stack(stack)};
  d.engines.push_back({.layout = layout, .policy = d.stack.serving.policy});
  return d;
}

inline ServedDeployment served_apart(const std::string& stack, const EngineLayout& prefill,
                                     const EngineLayout& decode) {
  ServedDeployment d = served_by(stack, prefill);
  d.engines.front().role = EngineRole::prefill;
  d.engines.push_back(
      {.role = EngineRole::decode, .layout = decode, .policy = d.stack.serving.policy});
  return d;
}

inline EngineCommand command_of(const ServedDeployment& d, std::size_t engine = 0,
                                EngineDialect dialect = EngineDialect::own) {
  return engine_command(d, d.engines[engine], dialect);
}

// The value of a flag: "" for a switch; "absent" where it is not said.
inline std::string value_of(const EngineCommand& c, const std::string& name) {
  for (const LaunchFlag& flag : c.flags)
    if (flag.name == name) return flag.value;
  return "absent";
}

inline bool is_missing(const EngineCommand& c, const std::string& key) {
  return std::any_of(c.missing.begin(), c.missing.end(),
                     [&](const FlagNote& note) { return note.key == key; });
}

inline const std::vector<std::string>& served_stacks() {
  static const std::vector<std::string> all = {
      "vllm@0.2",   "vllm@0.8",   "vllm@0.11",  "vllm",       "sglang@0.4",
      "sglang@0.5", "trtllm@1.0", "trtllm@1.1", "trtllm@1.2", "vllm@0.9"};
  return all;
}

// An engine that nobody would ask for, of valid axes.
inline ServedDeployment any_deployment() {
  const auto power = [](int most) { return std::int64_t{1} << *rc::gen::inRange(0, most + 1); };
  EngineLayout l{.tp = power(3), .pp = power(2), .attention_dp = power(4)};
  l.ep = std::min(power(7), l.tp * l.attention_dp);
  l.etp = l.tp * l.attention_dp / l.ep;
  if (l.ep > 1 && *rc::gen::arbitrary<bool>()) l.expert_copies = l.ep * *rc::gen::inRange(0, 3);
  l.precision = *rc::gen::element(PrecisionRecipe::bf16, PrecisionRecipe::fp16,
                                  PrecisionRecipe::fp8_current, PrecisionRecipe::fp8_blockwise,
                                  PrecisionRecipe::nvfp4, PrecisionRecipe::int4);
  l.cache = *rc::gen::element(Format::bf16, Format::fp8, Format::fp4);
  ServedDeployment d = served_by(*rc::gen::elementOf(served_stacks()), l);
  d.experts = *rc::gen::arbitrary<bool>() || l.ep > 1 ? 256 : 0;
  d.gpus_per_host = *rc::gen::element(4, 8);
  d.gpus_per_domain = d.gpus_per_host == 4 ? 72 : 8;
  d.router = *rc::gen::element(RouterKind::round_robin, RouterKind::prefix, RouterKind::session,
                               RouterKind::least_tokens);
  if (*rc::gen::arbitrary<bool>()) d.longest = 4096;
  if (*rc::gen::arbitrary<bool>())
    d.guessing = {.kind = *rc::gen::element(DraftKind::mtp, DraftKind::eagle3, DraftKind::draft,
                                            DraftKind::ngram),
                  .drafts = *rc::gen::inRange(1, 6),
                  .guesser = ""};
  EnginePolicy& p = d.engines.front().policy;
  p.token_budget = *rc::gen::inRange(512, 20000);
  p.max_sequences = *rc::gen::inRange(1, 512);
  p.block_tokens = power(6);
  p.prefix_cache = *rc::gen::arbitrary<bool>();
  p.chunked_prefill = *rc::gen::arbitrary<bool>();
  p.queue_limit = *rc::gen::element(0, 7);
  p.long_prefill = *rc::gen::element(0, 300);
  p.mixed_steps = *rc::gen::arbitrary<bool>();
  p.balance_steps = *rc::gen::element(0, 50);
  p.batch_wait.steps = *rc::gen::element(0, 40);
  p.batch_wait.tokens = *rc::gen::element(0.0, 0.8);
  p.stream_interval = *rc::gen::element(1, 20);
  p.receive_interval = *rc::gen::element(1, 10);
  p.watermark = *rc::gen::element(0.0, 0.05);
  p.capacity = *rc::gen::element(CapacityPolicy::no_evict, CapacityPolicy::max_utilisation);
  p.rank_choice = *rc::gen::element(RankChoice::round_robin, RankChoice::least_requests);
  if (*rc::gen::arbitrary<bool>()) p.priorities = {0, 1};
  for (int tiers = *rc::gen::inRange(0, 3); tiers > 0; --tiers)
    p.tiers.push_back({.name = tiers == 1 ? "host" : "nvme",
                       .capacity = Bytes(256e9),
                       .bandwidth = BytesPerSecond(50e9)});
  if (!p.tiers.empty() && *rc::gen::arbitrary<bool>()) p.preemption = Preemption::swap;
  d.engines.front().replicas = *rc::gen::inRange(1, 20);
  if (*rc::gen::arbitrary<bool>()) {
    d.engines.front().role = EngineRole::prefill;
    d.engines.push_back(d.engines.front());
    d.engines.back().role = EngineRole::decode;
    d.engines.back().replicas = *rc::gen::inRange(1, 5);
  }
  return d;
}

}  // namespace orrery
