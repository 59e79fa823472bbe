// SPDX-License-Identifier: Apache-2.0
// Checks an engine's policy.
#include "workloads/serving/engine_policy.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"

namespace orrery {

void check_policy(const EnginePolicy& p, const std::string& file) {
  const auto want = [&](bool holds, const std::string& path, const auto& found,
                        const std::string& expected) {
    if (!holds)
      throw Error(
          {.file = file, .path = path, .found = fmt::format("{}", found), .expected = expected});
  };
  const auto positive = [&](std::int64_t value, const std::string& path) {
    want(value > 0, path, value, "at least 1");
  };
  const auto share = [&](double value, const std::string& path) {
    want(value >= 0 && value <= 1, path, value, "a share between 0 and 1");
  };
  positive(p.max_sequences, "max_sequences");
  positive(p.block_tokens, "block_tokens");
  want(p.token_budget >= p.max_sequences, "token_budget", p.token_budget,
       "a token for each sequence at least: all that run get one in a step");
  want(p.chunk >= 0, "chunk", p.chunk, "no negative number");
  want(p.long_prefill >= 0, "long_prefill", p.long_prefill, "no negative number");
  want(p.watermark >= 0 && p.watermark < 1, "watermark", p.watermark, "a share below 1");
  want(p.balance_steps >= 0, "balance_steps", p.balance_steps, "no negative number");
  want(p.batch_wait.steps >= 0, "batch_wait_steps", p.batch_wait.steps, "no negative number");
  share(p.batch_wait.tokens, "batch_wait_tokens");
  want(p.queue_limit >= 0, "queue_limit", p.queue_limit, "no negative number");
  positive(p.receive_interval, "receive_interval");
  positive(p.stream_interval, "stream_interval");
  want(p.first_prompts >= Ticks{}, "first_prompts", p.first_prompts.ps, "no negative time");
  want(p.front >= Ticks{}, "front", p.front.ps, "no negative time");
  share(p.new_tokens.initial, "new_tokens.initial");
  share(p.new_tokens.lowest, "new_tokens.lowest");
  want(p.new_tokens.lowest <= p.new_tokens.initial, "new_tokens.lowest", p.new_tokens.lowest,
       "no more than the initial share");
  positive(p.new_tokens.decay_steps, "new_tokens.decay_steps");
  positive(p.new_tokens.clip, "new_tokens.clip");
  want(p.new_tokens.retract_steps >= 0, "new_tokens.retract_steps", p.new_tokens.retract_steps,
       "no negative number");
  for (const CacheTier& tier : p.tiers) {
    want(tier.capacity.si() >= 0, "tiers." + tier.name + ".capacity", tier.capacity.si(),
         "no negative size");
    want(tier.bandwidth.si() > 0, "tiers." + tier.name + ".bandwidth", tier.bandwidth.si(),
         "a bandwidth above 0");
  }
}

}  // namespace orrery
