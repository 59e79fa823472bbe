// SPDX-License-Identifier: Apache-2.0
// Says in sentences what a case of goodput takes for granted.
#include <fmt/format.h>

#include <cmath>

#include "sim/base/text/words.h"
#include "sim/outcome/months/goodput.h"

namespace orrery {
namespace {

// The best that Meta reports of a store for training (Llama 3, arXiv 2407.21783).
constexpr BytesPerSecond largest_store(7e12);

// "250 steps (41 min)" where saves are counted in steps.
std::string interval_text(const TierUse& tier, const GoodputCase& input) {
  if (!input.whole_steps) return to_text(tier.interval);
  const double steps = std::round(tier.interval / input.step);
  return fmt::format("{} ({})", plural(steps, "step"), to_text(tier.interval));
}

std::string store_note(const TierUse& tier, const GoodputCase& input) {
  if (!std::isfinite(tier.interval.si()))
    return fmt::format("no checkpoints to the {}: nothing fails that would need them", tier.name);
  std::string text =
      fmt::format("a checkpoint of {} every {} to the {}: it stops the steps for {}",
                  to_text(tier.size), interval_text(tier, input), tier.name, to_text(tier.stall));
  if (tier.write > Seconds{})
    text +=
        fmt::format(" and is written behind them in {} at {}, {} on average", to_text(tier.write),
                    to_text(tier.bandwidth), to_text(tier.size / tier.interval));
  if (tier.write > Seconds{} && tier.slowed > 0)
    text += tier.slowed < 1e-4
                ? std::string(", which slows them by less than 0.01%")
                : fmt::format(", which slows them by {:.2g}% meanwhile", 100 * tier.slowed);
  return text;
}

}  // namespace

std::vector<std::string> goodput_notes(const GoodputCase& input, const Goodput& result) {
  std::vector<std::string> notes;
  for (const TierUse& tier : result.tiers)
    if (tier.size > Bytes{}) notes.push_back(store_note(tier, input));
  if (const TierUse& last = result.tiers.back(); last.bandwidth > largest_store)
    notes.push_back(
        fmt::format("the {}'s {} are {:.2g} times the most that is published of one; the rate is "
                    "taken in proportion to the accelerators",
                    last.name, to_text(last.bandwidth), last.bandwidth / largest_store));
  if (result.start_extrapolation > 1)
    notes.push_back(fmt::format(
        "a start takes {}, in proportion to the accelerators: {:.2g} times as many as the {:.0f} "
        "of which one is published",
        to_text(input.start.value), result.start_extrapolation, input.start_measured));
  for (const InterruptionRate& rate : result.interruptions)
    if (rate.name == "preemption")
      notes.push_back(fmt::format(
          "spot hosts are taken back {:.2g} times a day, and nothing is saved before they go",
          rate.per_day));
  if (!input.elastic && share_of(result.shares, TimeShare::waiting) > 0.001)
    notes.push_back(fmt::format(
        "with {} spare {}s the job waits {:.2g}% of the time; nothing fails while it does",
        input.spares, input.units.name, 100 * share_of(result.shares, TimeShare::waiting)));
  return notes;
}

}  // namespace orrery
