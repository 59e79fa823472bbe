// SPDX-License-Identifier: Apache-2.0
// Counts the hosts of a job and the ranks on each.
#include "sim/launch/script/host_plan.h"

#include <algorithm>

#include "sim/engine/placement.h"

namespace orrery {
namespace {

std::int64_t divided_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

}  // namespace

HostPlan host_plan(const Scenario& s) {
  const std::int64_t job = s.layout.gpus(), host = s.cluster.gpus_per_host,
                     domain = s.cluster.fabric.scale_up.domain;
  const std::int64_t used = place(s.layout, s.cluster.fabric).ranks_per_domain;
  HostPlan plan{.accelerators = host, .domain_hosts = std::max<std::int64_t>(1, domain / host)};
  if (domain <= host) {
    plan.ranks = std::min(job, used * std::max<std::int64_t>(1, host / domain));
  } else {
    // Hosts alike, so that the scheduler may give any of them: as few as hold the domain's ranks.
    plan.ranks = std::min(used, host);
    while (used % plan.ranks != 0) --plan.ranks;
    plan.hosts_per_domain = used / plan.ranks;
  }
  plan.hosts = divided_up(job, plan.ranks);
  plan.last_ranks = job - (plan.hosts - 1) * plan.ranks;
  return plan;
}

}  // namespace orrery
