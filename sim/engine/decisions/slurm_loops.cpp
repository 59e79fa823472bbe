// SPDX-License-Identifier: Apache-2.0
// Turns whole seconds of Slurm into times of a cluster.
#include "sim/engine/decisions/slurm_loops.h"

#include <algorithm>
#include <utility>

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
    : state_(state),
      settings_(question.loops.slurm),
      passes_(question.shape, question.loops.slurm),
      multifactor_(question.loops.slurm.multifactor, static_cast<double>(state.slots().total())),
      loses_hosts_(may_lose_hosts(question)),
      out_(static_cast<std::size_t>(question.shape.hosts)) {
  if (loses_hosts_) look_at_hosts();
  for (std::uint32_t number = 0; number < state.records.size(); ++number) {
    const ClusterJob& job = state.job(number);
    multifactor_.know(job.queue, job.user);
    highest_ = std::max<std::int32_t>(highest_, job.priority);
  }
}

MultifactorJob SlurmLoops::factors_of(std::uint32_t number) const {
  const ClusterJob& job = state_.job(number);
  return {.queue = job.queue,
          .user = job.user,
          .submit = to_seconds(eligible(job, state_.records[number])).si(),
          .gpus = static_cast<double>(job.gpus),
          .qos = highest_ > 0 ? std::max(0.0, static_cast<double>(job.priority) / highest_) : 0};
}

void SlurmLoops::renew_priorities(FleetTime now) {
  const MultifactorSettings& settings = settings_.multifactor;
  if (settings.is_neutral() || now < priorities_from_) return;
  const double at = to_seconds(now).si();
  multifactor_.rank(at);
  passes_.set_priorities(
      [&](std::uint32_t job) { return multifactor_.priority(factors_of(job), at); });
  priorities_from_ = now + to_fleet_time(seconds(settings.calc_period));
}

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
  const MultifactorJob factors = factors_of(number);
  passes_.submit(number, job.gpus, (job.limit.us + second - 1) / second,
                 multifactor_.priority(factors, factors.submit));
  asked_ = changed_ = true;
}

void SlurmLoops::settle(bool changed) {
  lost_ = lost_ || (changed && loses_hosts_);
  for (const std::uint32_t job : state_.ended) {
    passes_.release(job);
    running_.erase(job);
    multifactor_.end(factors_of(job), to_seconds(state_.records[job].end).si());
    asked_ = changed_ = true;
  }
}

void SlurmLoops::look_at_hosts() {
  for (std::int32_t host = 0; host < state_.slots().shape().hosts; ++host) {
    const bool out = state_.slots().is_out(host);
    if (out == out_[static_cast<std::size_t>(host)]) continue;
    out_[static_cast<std::size_t>(host)] = out;
    passes_.set_out(host, out);
    asked_ = changed_ = true;
  }
}

// Who lost its place waits again, now or once it is kept back no more.
void SlurmLoops::look_at_stops(FleetTime now) {
  for (auto job = running_.begin(); job != running_.end();) {
    if (state_.is_running(*job)) {
      ++job;
      continue;
    }
    passes_.release(*job);
    multifactor_.end(factors_of(*job), to_seconds(now).si());
    stopped_.push_back(*job);
    job = running_.erase(job);
  }
  std::erase_if(stopped_, [&](std::uint32_t job) {
    if (state_.is_kept_back(job)) return false;
    submit(job);
    return true;
  });
}

void SlurmLoops::start(const SlurmPasses::Start& start, FleetTime now) {
  const std::int32_t of_host = state_.slots().shape().gpus_per_host;
  Grants grants = grants_of(start, of_host, state_.job(start.job).gpus % of_host);
  state_.begin_waiting_job(start.job, now, grants);
  multifactor_.begin(factors_of(start.job), to_seconds(now).si());
  if (loses_hosts_) running_.insert(start.job);
}

void SlurmLoops::wake(FleetTime now) {
  if (std::exchange(lost_, false)) {
    look_at_hosts();
    look_at_stops(now);
  }
  if (passes_.waiting() > 0) {
    renew_priorities(now);
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
