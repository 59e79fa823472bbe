// SPDX-License-Identifier: Apache-2.0
// Knows how each remedy changes a case of goodput.
#include "sim/outcome/months/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery {
namespace {

// "3.5 min (42 s to 5.6 min)": what a remedy reaches, and the range of that.
std::string range_text(const Ranged<Seconds>& of) {
  if (of.low == of.high) return to_text(of.value);
  return fmt::format("{} ({} to {})", to_text(of.value), to_text(of.low), to_text(of.high));
}

// What a lever did: text for the reader, or why it did nothing.
struct Outcome {
  std::string action, reason;
};

Outcome add_spares(GoodputCase& one, const RemedyOptions& options) {
  const std::int64_t needed = spares_needed(one, options.spare_probability);
  if (needed <= one.spares)
    return {"", fmt::format("the {} spares are enough in {:.3g}% of cases", one.spares,
                            100 * options.spare_probability)};
  const std::int64_t gpus = (one.gpus + one.units.count - 1) / one.units.count;
  one.spares = needed;
  return {fmt::format("{} spare {}s ({} accelerators), enough in {:.3g}% of cases", needed,
                      one.units.name, needed * gpus, 100 * options.spare_probability),
          ""};
}

Outcome save_asynchronously(GoodputCase& one, const RemedyOptions&) {
  bool any = false;
  std::string names;
  for (CheckpointTier& tier : one.tiers) {
    if (tier.write > Seconds{} || tier.stall <= one.snapshot) continue;
    names += (names.empty() ? "" : ", ") + tier.name;
    tier.write = tier.stall;
    tier.stall = one.snapshot;
    if (tier.interval > Seconds{}) tier.interval = std::max(tier.interval, tier.write);
    any = true;
  }
  if (!any) return {"", "saves already stall the job no longer than a copy to host memory"};
  return {fmt::format("saves to the {} stall for {}, the copy to host memory, and write behind "
                      "the steps",
                      names, to_text(one.snapshot)),
          ""};
}

Outcome replicate_in_memory(GoodputCase& one, const RemedyOptions&) {
  const auto after = std::find_if(one.tiers.begin(), one.tiers.end(), [](const CheckpointTier& t) {
    return t.survives >= BlastRadius::domain;
  });
  if (after != one.tiers.end() && after->survives < BlastRadius::site)
    return {"", "checkpoints are in the memory of peers already"};
  const Bytes size = one.tiers.back().size;
  one.tiers.insert(after, {.name = "memory of peers",
                           .stall = one.snapshot,
                           .write = one.peer_write,
                           .read = one.peer_write,
                           .flow = one.peer_flow,
                           .slowed = one.peer_slowed,
                           .survives = BlastRadius::domain,
                           .size = size,
                           .bandwidth = size / std::max(one.peer_write, seconds(1e-9))});
  return {fmt::format("checkpoints in the host memory of another domain: {} to copy, {} to send",
                      to_text(one.snapshot), to_text(one.peer_write)),
          ""};
}

Outcome shrink(GoodputCase& one, const RemedyOptions& options) {
  if (one.elastic) return {"", "the job is elastic already"};
  if (one.replicas < 2) return {"", "there is one data-parallel replica: no peer can go on"};
  const Seconds read = one.tiers.back().read;
  const Seconds whole =
      one.detection.value + one.diagnosis.value + one.start.value + read + one.warm_up.value;
  one.elastic = {.replicas = one.replicas,
                 .stall = std::min(options.elastic_recovery.value, whole),
                 .rejoin = whole};
  const Ranged<Seconds> stall = {.value = one.elastic->stall,
                                 .low = std::min(options.elastic_recovery.low, whole),
                                 .high = std::min(options.elastic_recovery.high, whole)};
  return {fmt::format("a failing replica of {} leaves, the others go on after {}", one.replicas,
                      range_text(stall)),
          ""};
}

void scale_recovery(GoodputCase& one, double factor) {
  for (Ranged<Seconds>* time : {&one.detection, &one.diagnosis, &one.start, &one.warm_up}) {
    time->value *= factor;
    time->low *= factor;
    time->high *= factor;
  }
}

Outcome restart_faster(GoodputCase& one, const RemedyOptions& options) {
  const auto before =
      one.detection.value + one.diagnosis.value + one.start.value + one.warm_up.value;
  if (before <= Seconds{}) return {"", "recovery takes no time"};
  const Ranged<double>& factor = options.restart_factor;
  scale_recovery(one, factor.value);
  return {fmt::format("detection, diagnosis, start and warm-up in {} instead of {}",
                      range_text({.value = before * factor.value,
                                  .low = before * factor.low,
                                  .high = before * factor.high}),
                      to_text(before)),
          ""};
}

Outcome evict_lemons(GoodputCase& one, const RemedyOptions&) {
  if (one.lemon_share.value <= 0) return {"", "no share of failures is put down to bad hosts"};
  const double share = one.lemon_share.value;
  for (FailureClass& failure : one.failures) {
    if (failure.job_wide) continue;
    failure.rate.value *= 1 - share;
    failure.rate.low *= 1 - one.lemon_share.high;
  }
  one.lemon_share = {};
  return {fmt::format("hosts that fail again and again are found and sent away: {:.2g}% fewer "
                      "failures of machines",
                      100 * share),
          ""};
}

Outcome check_numbers(GoodputCase& one, const RemedyOptions& options) {
  Seconds before;
  for (FailureClass& failure : one.failures) {
    if (failure.latency.value <= options.corruption_latency.value) continue;
    before = std::max(before, failure.latency.value);
    failure.latency = exactly(options.corruption_latency.value);
  }
  if (before <= Seconds{}) return {"", "wrong numbers are noticed as fast already"};
  return {fmt::format("wrong numbers are noticed in {} instead of {}, what the checks cost not "
                      "counted",
                      range_text(options.corruption_latency), to_text(before)),
          ""};
}

struct Lever {
  const char* name;
  Outcome (*apply)(GoodputCase&, const RemedyOptions&);
};
constexpr Lever levers[] = {{"hot spares", add_spares},
                            {"asynchronous checkpoints", save_asynchronously},
                            {"in-memory replicas", replicate_in_memory},
                            {"elastic data parallelism", shrink},
                            {"faster restart", restart_faster},
                            {"eviction of bad hosts", evict_lemons},
                            {"checks for corruption", check_numbers}};

void score(Remedy& remedy, const Goodput& before) {
  const Goodput after = goodput(remedy.changed);
  remedy.effective = after.effective;
  remedy.gain = after.effective - before.effective;
  remedy.days_saved = std::isfinite(after.days) ? before.days - after.days : 0;
}

// The largest factor with which the case reaches the target: goodput falls as the factor grows.
template <class Scale>
double largest_factor(const GoodputCase& input, double target, Scale scale) {
  const auto reaches = [&](double factor) {
    GoodputCase one = input;
    scale(one, factor);
    return goodput(one).effective >= target;
  };
  if (reaches(1)) return 1;
  if (!reaches(0)) return 0;
  double low = 0, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    (reaches(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

RemedyOptions remedy_options(const ReliabilityProfile& profile) {
  const auto ranged = [](const auto& sourced) {
    const auto value = sourced.get();
    return Ranged<std::decay_t<decltype(value)>>{
        .value = value, .low = sourced.low.value_or(value), .high = sourced.high.value_or(value)};
  };
  return {.elastic_recovery = ranged(profile.elastic_recovery),
          .restart_factor = ranged(profile.restart_factor),
          .corruption_latency = ranged(profile.corruption_latency)};
}

std::vector<Remedy> goodput_remedies(const GoodputCase& input, const RemedyOptions& options) {
  const Goodput before = goodput(input);
  std::vector<Remedy> remedies;
  Remedy all{.name = "all of them", .changed = input};
  for (const Lever& lever : levers) {
    Remedy remedy{.name = lever.name, .changed = input};
    const bool applied = options.applied == lever.name || options.applied == all.name;
    const Outcome outcome =
        applied ? Outcome{"", "it is applied already"} : lever.apply(remedy.changed, options);
    remedy.action = outcome.action;
    remedy.reason = outcome.reason;
    score(remedy, before);
    if (remedy.reason.empty() && remedy.gain <= 0) {
      remedy = {.name = lever.name,
                .action = outcome.action,
                .reason = "it would gain nothing here",
                .changed = input};
      score(remedy, before);
    }
    remedies.push_back(remedy);
    if (!remedy.reason.empty()) continue;
    lever.apply(all.changed, options);
    all.action += (all.action.empty() ? "" : ", ") + remedy.name;
  }
  if (all.action.empty()) all.reason = "none applies";
  score(all, before);
  remedies.push_back(all);
  return remedies;
}

std::vector<std::string> remedy_names() {
  std::vector<std::string> names;
  for (const Lever& lever : levers) names.emplace_back(lever.name);
  names.emplace_back("all of them");
  return names;
}

GoodputCase with_remedy(const GoodputCase& input, const std::string& name,
                        const RemedyOptions& options) {
  for (Remedy& remedy : goodput_remedies(input, options))
    if (remedy.name == name && remedy.reason.empty()) return std::move(remedy.changed);
  return input;
}

GoodputRequirement goodput_requirement(const GoodputCase& input, double target) {
  if (!(target > 0 && target < 1))
    throw Error({.file = "goodput",
                 .path = "target",
                 .found = fmt::format("{:.4g}", target),
                 .expected = "a share of time between 0 and 1"});
  const auto recovery = [](GoodputCase& one, double factor) {
    scale_recovery(one, factor);
    if (one.elastic) one.elastic->stall *= factor;
  };
  const auto failures = [](GoodputCase& one, double factor) {
    for (FailureClass& failure : one.failures) {
      failure.rate.value *= factor;
      failure.rate.low *= factor;
      failure.rate.high *= factor;
    }
  };
  const auto latency = [](GoodputCase& one, double factor) {
    for (FailureClass& failure : one.failures)
      failure.latency = exactly(failure.latency.value * factor);
  };
  return {.recovery = largest_factor(input, target, recovery),
          .failures = largest_factor(input, target, failures),
          .latency = largest_factor(input, target, latency)};
}

}  // namespace orrery
