// SPDX-License-Identifier: Apache-2.0
// Knows how failures are sorted by the checkpoint that survives them.
#include "sim/outcome/months/levels.h"

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

Recovery make_recovery(const std::vector<RecoveryPhase>& phases) {
  Recovery recovery;
  CHECK_THAT(phases.size() <= recovery.phases.size(), "a recovery has at most six phases");
  std::copy(phases.begin(), phases.end(), recovery.phases.begin());
  for (const RecoveryPhase& phase : phases) recovery.total += phase.seconds;
  return recovery;
}

Recovery restart(const GoodputCase& input, const FailureClass& failure, Seconds read) {
  return make_recovery({{TimeShare::detection, input.detection.value.si()},
                        {TimeShare::diagnosis, input.diagnosis.value.si()},
                        {TimeShare::outage, failure.outage.value.si()},
                        {TimeShare::restart, input.start.value.si() + read.si()},
                        {TimeShare::warm_up, input.warm_up.value.si()}});
}

Recovery leave(const GoodputCase& input) {
  const double stall = input.elastic->stall.si();
  const double detection = std::min(input.detection.value.si(), stall);
  return make_recovery(
      {{TimeShare::detection, detection}, {TimeShare::restart, stall - detection}});
}

bool only_a_replica(const GoodputCase& input, const FailureClass& failure) {
  return input.elastic.has_value() && !failure.job_wide && failure.blast != BlastRadius::site &&
         !(failure.latency.value > Seconds{});
}

// Corrupted state may lie in every newer checkpoint: only the last tier keeps old ones.
std::size_t tier_of(const GoodputCase& input, const FailureClass& failure) {
  if (failure.latency.value > Seconds{}) return input.tiers.size() - 1;
  std::size_t tier = 0;
  while (input.tiers[tier].survives < failure.blast) ++tier;
  return tier;
}

}  // namespace

double mean_rate(const FailureClass& failure, Seconds run) {
  const double rate = failure.rate.value.si(), decay = failure.decay.si();
  if (decay <= 0 || run <= Seconds{}) return rate;
  return rate * decay / run.si() * -std::expm1(-run.si() / decay);
}

double throughput_at(const ElasticPlan& plan, double gpus) {
  if (gpus <= 0) return 0;
  if (gpus >= 1 || plan.throughput.empty()) return std::min(gpus, 1.0);
  ThroughputPoint below, above{1, 1};
  for (const ThroughputPoint& point : plan.throughput) {
    if (point.gpus <= gpus && point.gpus >= below.gpus) below = point;
    if (point.gpus >= gpus && point.gpus <= above.gpus) above = point;
  }
  if (above.gpus <= below.gpus) return below.throughput;
  const double way = (gpus - below.gpus) / (above.gpus - below.gpus);
  return below.throughput + way * (above.throughput - below.throughput);
}

std::vector<GoodputLevel> goodput_levels(const GoodputCase& input) {
  std::vector<GoodputLevel> levels;
  if (input.elastic)
    levels.push_back({.name = "peers", .peers = true, .interval = input.step.si()});
  const std::size_t first = levels.size();
  for (const CheckpointTier& tier : input.tiers) {
    const double slowed = tier.slowed * tier.write.si();
    levels.push_back({.name = tier.name,
                      .interval = tier.interval.si(),
                      .least = tier.least_interval.si(),
                      .stall = tier.stall.si() + slowed,
                      .write = tier.write.si() - slowed,
                      .slowed = slowed});
  }
  for (std::size_t i = 0; i < input.failures.size(); ++i) {
    const FailureClass& failure = input.failures[i];
    const bool elastic = only_a_replica(input, failure);
    const std::size_t tier = elastic ? 0 : tier_of(input, failure);
    GoodputLevel& level = levels[elastic ? 0 : first + tier];
    LevelFailure item{
        .index = i,
        .rate = mean_rate(failure, input.run),
        .latency = failure.latency.value.si(),
        .recovery = elastic ? leave(input) : restart(input, failure, input.tiers[tier].read)};
    level.rate += item.rate;
    level.failures.push_back(item);
  }
  return levels;
}

}  // namespace orrery
