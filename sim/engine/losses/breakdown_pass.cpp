// SPDX-License-Identifier: Apache-2.0
// Stops the jobs on what breaks, and exchanges hosts for spare ones.
#include "sim/engine/losses/breakdown_pass.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::uint32_t nobody = UINT32_MAX;

}  // namespace

BreakdownPass::BreakdownPass(FleetState& state, const FleetQuestion& question)
    : state_(state),
      plan_(question.breakdowns),
      tell_(question.tell),
      breakdowns_(plan_, state.slots().total(), question.seed),
      shop_(plan_.repair_crews),
      counts_(plan_.kinds.size()) {
  for (std::int32_t i = 0; i < plan_.spare_hosts; ++i) {
    const std::int32_t host = question.shape.hosts - 1 - i;
    spares_.insert(host);
    spare_gpus_ += question.shape.gpus_of(host);
    state_.slots().set_out(host, true);
  }
  most_gpus_ = state_.slots().total() - spare_gpus_;
}

bool BreakdownPass::repair_until(FleetTime now) {
  bool changed = false;
  while (shop_.next() <= now) {
    changed = true;
    const FleetTime at = shop_.next();
    const std::vector<std::int32_t> hosts = shop_.take().hosts;
    tell_hosts(FleetEventKind::repaired, at, hosts);
    for (const std::int32_t host : hosts) {
      if (lacking_ > 0) {
        --lacking_;
        state_.slots().set_out(host, false);
        tell_hosts(FleetEventKind::in, at, {&host, 1});
      } else {
        spares_.insert(host);
        spare_gpus_ += state_.slots().shape().gpus_of(host);
      }
    }
  }
  return changed;
}

bool BreakdownPass::break_until(FleetTime now) {
  bool changed = false;
  while (breakdowns_.next().at <= now) {
    changed = strike(breakdowns_.next()) || changed;
    breakdowns_.pop();
  }
  return changed;
}

// The job that holds an accelerator of a host: accelerators are handed out from 0 on, in the order
// in which jobs came to the host.
std::uint32_t BreakdownPass::job_at(std::int32_t host, std::int64_t gpu) const {
  std::int64_t first = 0;
  for (const std::uint32_t job : state_.jobs_on(host)) {
    for (const HostGrant& grant : state_.grants_of(job))
      if (host >= grant.host && host < grant.host + grant.hosts) first += grant.gpus;
    if (gpu < first) return job;
  }
  return nobody;
}

bool BreakdownPass::strike(const Breakdown& one) {
  const BreakdownKind& kind = plan_.kinds[one.kind];
  const SlotShape& shape = state_.slots().shape();
  const auto host = static_cast<std::int32_t>(one.gpu / shape.gpus_per_host);
  const std::uint32_t struck = job_at(host, one.gpu % shape.gpus_per_host);
  if (struck == nobody) return false;  // what nobody uses does not fail
  ++counts_[one.kind].struck;
  std::vector<std::uint32_t> jobs = {struck};
  const HostSpan hosts = hosts_around(shape, kind.reach, host);
  if (kind.reach > 0) {
    jobs.clear();
    for (std::int32_t h = hosts.from; h < hosts.to; ++h)
      jobs.insert(jobs.end(), state_.jobs_on(h).begin(), state_.jobs_on(h).end());
    std::sort(jobs.begin(), jobs.end());
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  }
  counts_[one.kind].stopped += static_cast<std::int64_t>(jobs.size());
  if (kind.reach > 0 && one.removed) {
    lose(kind, one, hosts, jobs);
    return true;
  }
  for (const std::uint32_t job : jobs) {
    state_.restart(job, one.at, one.at - to_fleet_time(kind.latency), to_fleet_time(kind.outage),
                   kind.name);
  }
  return true;
}

// Hosts go out for repair; whoever was on one waits for another.
void BreakdownPass::lose(const BreakdownKind& kind, const Breakdown& one, HostSpan hosts,
                         const std::vector<std::uint32_t>& jobs) {
  std::vector<std::int32_t> out;
  for (std::int32_t h = hosts.from; h < hosts.to; ++h) {
    if (state_.slots().is_out(h)) continue;
    state_.slots().set_out(h, true);
    out.push_back(h);
  }
  for (const std::uint32_t job : jobs) {
    state_.requeue(job, one.at, one.at - to_fleet_time(kind.latency), to_fleet_time(kind.outage),
                   kind.name);
  }
  counts_[one.kind].requeued += static_cast<std::int64_t>(jobs.size());
  tell_hosts(FleetEventKind::out, one.at, out, kind.name);
  for (std::size_t i = 0; i < out.size(); ++i) stand_in(one.at);
  shop_.bring(one.at, one.repair, std::move(out));
}

void BreakdownPass::tell_hosts(FleetEventKind kind, FleetTime at,
                               std::span<const std::int32_t> hosts, std::string_view cause) {
  if (!tell_ || hosts.empty()) return;
  const SlotShape& shape = state_.slots().shape();
  Grants place;
  for (const std::int32_t host : hosts)
    place.push_back({.host = host, .hosts = 1, .gpus = shape.gpus_of(host)});
  tell_({.at = at, .kind = kind, .gpus = gpus_of_place(place), .cause = cause, .place = &place});
}

void BreakdownPass::stand_in(FleetTime now) {
  if (spares_.empty()) {
    ++lacking_;
    return;
  }
  const std::int32_t host = *spares_.begin();
  spares_.erase(spares_.begin());
  spare_gpus_ -= state_.slots().shape().gpus_of(host);
  state_.slots().set_out(host, false);
  tell_hosts(FleetEventKind::in, now, {&host, 1});
}

}  // namespace orrery
