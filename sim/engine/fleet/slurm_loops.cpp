// SPDX-License-Identifier: Apache-2.0
// Turns whole seconds of Slurm into times of a cluster.
#include "sim/engine/fleet/slurm_loops.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::int64_t second = 1'000'000;

// At the next whole second.
FleetTime tick_from(FleetTime t) { return {(t.us + second - 1) / second * second}; }

Grants grants_of(const SlurmPasses::Start& start, std::int32_t of_host, std::int32_t rest) {
  Grants out;
  for (const std::int32_t host : start.hosts) {
    if (!out.empty() && out.back().host + out.back().hosts == host)
      ++out.back().hosts;
    else
      out.push_back({.host = host, .hosts = 1, .gpus = of_host});
  }
  if (!start.rest_host) return out;
  const auto behind = std::find_if(out.begin(), out.end(),
                                   [&](const HostGrant& g) { return g.host > *start.rest_host; });
  out.insert(behind, {.host = *start.rest_host, .hosts = 1, .gpus = rest});
  return out;
}

}  // namespace

SlurmLoops::SlurmLoops(FleetState& state, const FleetQuestion& question)
    : state_(state), settings_(question.slurm), passes_(question.shape, question.slurm) {}

FleetTime SlurmLoops::next_main() const {
  const FleetTime whole = last_whole_ + FleetTime{settings_.sched_interval * second};
  if (!asked_) return tick_from(std::max(now_, whole));
  const FleetTime delayed = last_main_ + FleetTime{settings_.batch_delay * second};
  return tick_from(std::max(now_, std::min(whole, delayed)));
}

FleetTime SlurmLoops::next_backfill() const {
  return changed_ ? tick_from(std::max(now_, backfill_from_)) : fleet_never;
}

FleetTime SlurmLoops::next() const {
  if (passes_.waiting() == 0) return fleet_never;
  return std::min(next_main(), next_backfill());
}

void SlurmLoops::submit(std::uint32_t number) {
  const ClusterJob& job = state_.job(number);
  passes_.submit(number, job.gpus, (job.limit.us + second - 1) / second);
  asked_ = changed_ = true;
}

void SlurmLoops::settle(bool /*changed*/) {
  for (const std::uint32_t job : state_.ended) {
    passes_.release(job);
    asked_ = changed_ = true;
  }
  state_.ended.clear();
}

void SlurmLoops::start(const SlurmPasses::Start& start, FleetTime now) {
  const std::int32_t of_host = state_.slots().shape().gpus_per_host;
  Grants grants = grants_of(start, of_host, state_.job(start.job).gpus % of_host);
  state_.begin_waiting_job(start.job, now, grants);
}

void SlurmLoops::wake(FleetTime now) {
  if (passes_.waiting() > 0) {
    const bool main = next_main() <= now, backfill = next_backfill() <= now;
    if (main) {
      const bool whole = last_whole_ + FleetTime{settings_.sched_interval * second} <= now;
      for (const SlurmPasses::Start& one : passes_.main_pass(now.us / second, whole))
        start(one, now);
      last_main_ = now;
      if (whole) last_whole_ = now;
      asked_ = false;
    }
    if (backfill) {
      changed_ = false;
      for (const SlurmPasses::Start& one : passes_.backfill_pass(now.us / second)) {
        start(one, now);
        changed_ = true;
      }
      backfill_from_ = now + FleetTime{settings_.interval * second};
    }
  }
  now_ = now + FleetTime{1};
}

}  // namespace orrery
