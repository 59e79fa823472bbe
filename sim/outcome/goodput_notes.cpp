// Knows in sentences what a case of goodput takes for granted.
#include <fmt/format.h>

#include <cmath>

#include "sim/outcome/goodput.h"

namespace orrery {
namespace {

// The best that Meta reports of a store for training (Llama 3, arXiv 2407.21783).
constexpr BytesPerSecond largest_store(7e12);

std::string store_note(const TierUse& tier) {
  if (!std::isfinite(tier.interval.si()))
    return fmt::format("no checkpoints to the {}: nothing fails that would need them", tier.name);
  std::string text =
      fmt::format("a checkpoint of {} every {} to the {}: it stops the steps for {}",
                  to_text(tier.size), to_text(tier.interval), tier.name, to_text(tier.stall));
  if (tier.write > Seconds{})
    text +=
        fmt::format(" and is written behind them in {} at {}, {} on average", to_text(tier.write),
                    to_text(tier.bandwidth), to_text(tier.size / tier.interval));
  return text;
}

}  // namespace

std::vector<std::string> goodput_notes(const GoodputCase& input, const Goodput& result) {
  std::vector<std::string> notes;
  for (const TierUse& tier : result.tiers)
    if (tier.size > Bytes{}) notes.push_back(store_note(tier));
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
