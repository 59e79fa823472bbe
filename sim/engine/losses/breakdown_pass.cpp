// SPDX-License-Identifier: Apache-2.0
// Stops the jobs on what breaks, and exchanges hosts for spare ones.
#include "sim/engine/losses/breakdown_pass.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::uint32_t nobody = UINT32_MAX;

}  // namespace

BreakdownPass::BreakdownPass(FleetState& state, HostStock& hosts, const FleetQuestion& question)
    : state_(state),
      hosts_(hosts),
      plan_(question.breakdowns),
      breakdowns_(plan_, state.slots().shape(), question.seed),
      shop_(plan_.repair_crews),
      counts_(plan_.kinds.size()) {}

bool BreakdownPass::repair_until(FleetTime now) {
  bool changed = false;
  while (shop_.next() <= now) {
    const FleetTime at = shop_.next();
    const std::vector<std::int32_t> hosts = shop_.take().hosts;
    hosts_.come_back(at, hosts);
    changed = true;
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

// -1: it would have struck a lemon that is no longer there.
std::int32_t BreakdownPass::struck_host(const Breakdown& one) const {
  const auto host = static_cast<std::int32_t>(one.gpu / state_.slots().shape().gpus_per_host);
  if (!one.of_lemon) return host;
  if (exchanged_.contains(host)) return one.of_usual ? host : -1;
  if (hosts_.works(host)) return host;
  std::vector<std::int32_t> others;
  for (const std::int32_t lemon : breakdowns_.lemons())
    if (hosts_.works(lemon) && !exchanged_.contains(lemon)) others.push_back(lemon);
  if (others.empty()) return host;
  return others[static_cast<std::size_t>(one.which * static_cast<double>(others.size()))];
}

bool BreakdownPass::strike(const Breakdown& one) {
  const BreakdownKind& kind = plan_.kinds[one.kind];
  const SlotShape& shape = state_.slots().shape();
  const std::int32_t host = struck_host(one);
  if (host < 0) return false;
  const std::uint32_t struck = job_at(host, one.gpu % shape.gpus_per_host);
  if (struck == nobody) return false;  // what nobody uses does not fail
  lemons_.struck += one.of_lemon && !exchanged_.contains(host) ? 1 : 0;
  ++counts_[one.kind].struck;
  const std::vector<std::int32_t> hosts = hosts_around(shape, kind.reach, host);
  const std::vector<std::uint32_t> jobs =
      kind.reach > 0 ? hosts_.jobs_on(hosts) : state_.together_with(struck);
  counts_[one.kind].stopped += static_cast<std::int64_t>(jobs.size());
  const bool exchange = kind.reach == 1 && is_due(host, one.at);
  if (kind.reach > 0 && (one.removed || exchange)) {
    lose(kind, one, hosts, jobs);
    return true;
  }
  for (const std::uint32_t job : jobs) {
    state_.restart(job, one.at, one.at - to_fleet_time(kind.latency), to_fleet_time(kind.outage),
                   kind.name);
  }
  return true;
}

// Whether a host was struck so often that another one takes its place.
bool BreakdownPass::is_due(std::int32_t host, FleetTime now) {
  const auto often = static_cast<std::size_t>(plan_.lemons.exchange_after);
  if (often == 0) return false;
  std::vector<FleetTime>& strikes = strikes_[host];
  strikes.push_back(now);
  if (strikes.size() > often) strikes.erase(strikes.begin());
  if (strikes.size() < often || now - strikes.front() > plan_.lemons.within) return false;
  strikes_.erase(host);
  ++lemons_.exchanged;
  if (exchanged_.insert(host).second && breakdowns_.lemons().contains(host))
    ++lemons_.lemons_exchanged;
  return true;
}

// Hosts go out for repair; whoever was on one waits for another.
void BreakdownPass::lose(const BreakdownKind& kind, const Breakdown& one,
                         const std::vector<std::int32_t>& hosts,
                         const std::vector<std::uint32_t>& jobs) {
  std::vector<std::int32_t> out;
  for (const std::int32_t host : hosts)
    if (hosts_.works(host)) out.push_back(host);
  hosts_.leave(out);
  for (const std::uint32_t job : jobs) {
    state_.requeue(job, one.at, one.at - to_fleet_time(kind.latency), to_fleet_time(kind.outage),
                   kind.name);
  }
  counts_[one.kind].requeued += static_cast<std::int64_t>(jobs.size());
  hosts_.stand_in(one.at, out, kind.name);
  shop_.bring(one.at, one.repair, std::move(out));
}

}  // namespace orrery
