// SPDX-License-Identifier: Apache-2.0
// Rounds times of recovery and saves to those of a cluster's clock.
#include "sim/outcome/fleet/job_months.h"

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/outcome/months/job.h"
#include "sim/outcome/months/levels.h"
#include "topologies/clos.h"

namespace orrery {
namespace {

std::int64_t picoseconds(double seconds) { return std::llround(seconds * 1e12); }

std::int32_t reach_of(const Cluster& cluster, BlastRadius blast) {
  const std::int64_t host = cluster.gpus_per_host;
  const std::int64_t hosts = (cluster.gpus + host - 1) / host;
  std::int64_t gpus = host;
  switch (blast) {
    case BlastRadius::process:
      return 0;
    case BlastRadius::host:
      break;
    case BlastRadius::domain:
      gpus = cluster.fabric.scale_up.domain;
      break;
    case BlastRadius::leaf: {
      const ClosShape clos = clos_shape(cluster.fabric, cluster.gpus);
      if (!clos.tiers.empty()) gpus = clos.tiers.front().reach;
      break;
    }
    case BlastRadius::site:
      gpus = cluster.gpus;
      break;
  }
  return static_cast<std::int32_t>(std::clamp<std::int64_t>((gpus + host - 1) / host, 1, hosts));
}

}  // namespace

std::int64_t save_steps_of(Seconds interval, std::int64_t step_ps) {
  if (!(interval > Seconds{})) return 0;
  return std::max<std::int64_t>(1,
                                std::llround(interval.si() * 1e12 / static_cast<double>(step_ps)));
}

JobWork month_work(const GoodputCase& months, std::int64_t step_ps) {
  CHECK_THAT(!months.tiers.empty(), "a job's checkpoints go somewhere");
  GoodputCase last = months;
  last.tiers = {months.tiers.back()};
  const std::vector<GoodputLevel> levels = goodput_levels(last);
  const double interval = level_intervals(last, levels).back();
  JobWork work{.step_ps = step_ps};
  if (std::isfinite(interval)) {
    work.save_steps = save_steps_of(seconds(interval), step_ps);
    work.save_ps = picoseconds(levels.back().stall);
    work.write_ps = picoseconds(levels.back().write);
  }
  work.start = to_fleet_time(months.start.value);
  work.restart = to_fleet_time(months.detection.value + months.diagnosis.value +
                               last.tiers.front().read + months.warm_up.value);
  const CheckpointTier& tier = last.tiers.front();
  if (tier.read > Seconds{}) {
    work.later_read.alone = std::min(to_fleet_time(tier.read), work.restart);
    work.later_read.after =
        std::min(to_fleet_time(months.warm_up.value), work.restart - work.later_read.alone);
    work.later_read.bytes_per_s =
        std::max<std::int64_t>(1, std::llround((tier.size / tier.read).si()));
  }
  for (const FailureClass& failure : months.failures)
    if (failure.job_wide) work.own_failures = work.own_failures + failure.rate.value;
  work.planned_stops = months.maintenance_rate.value;
  work.stop = to_fleet_time(months.maintenance.value + months.warm_up.value);
  return work;
}

double slower_steps(const GoodputCase& months) {
  return 1 / ((1 - months.stragglers.value) * (1 - months.variation.value) *
              (1 - months.data_loading.value) * (1 - months.evaluation.value));
}

JobWork recorded_work(const ReliabilityProfile& profile, Seconds interval) {
  JobWork work;
  const auto time = [](const Sourced<Seconds>& s) {
    return to_fleet_time(s.value.value_or(Seconds{}));
  };
  if (interval > Seconds{}) {
    work.save_steps = std::max<std::int64_t>(1, to_fleet_time(interval).us);
    work.save_ps = picoseconds(profile.save_overhead.value.value_or(Seconds{}).si());
  }
  work.start = time(profile.recovery.start);
  work.start_each = time(profile.recovery.start_per_gpu);
  work.restart = time(profile.recovery.detection) + time(profile.recovery.diagnosis) +
                 time(profile.recovery.warm_up);
  return work;
}

LemonHosts lemon_hosts(const ReliabilityProfile& profile, std::int32_t hosts) {
  if (!profile.lemon_hosts.known() || !profile.lemon_share.known()) return {};
  return {.hosts = static_cast<std::int32_t>(std::lround(profile.lemon_hosts.get() * hosts)),
          .share = profile.lemon_share.get()};
}

BreakdownPlan breakdown_plan(const Cluster& cluster, const ReliabilityProfile& profile) {
  BreakdownPlan plan;
  for (const FailureClass& failure :
       failure_classes(profile, fleet_counts(cluster), cluster.device, cluster.host)) {
    if (failure.job_wide || !(failure.rate.value > Hertz(0))) continue;
    plan.kinds.push_back({.name = failure.name,
                          .rate = failure.rate.value,
                          .reach = reach_of(cluster, failure.blast),
                          .removed = failure.removed.value,
                          .repair = failure.repair.value,
                          .latency = failure.latency.value,
                          .outage = failure.outage.value});
  }
  return plan;
}

}  // namespace orrery
