// SPDX-License-Identifier: Apache-2.0
// Knows how many hosts a layout is started on, and how many ranks each of them gets.
#pragma once

#include <cstdint>

#include "sim/engine/scenario.h"

namespace orrery {

// Ranks count through the hosts in order: those of a host are neighbours.
struct HostPlan {
  std::int64_t hosts = 1;
  std::int64_t ranks = 1;         // started on a host, at most its accelerators
  std::int64_t last_ranks = 1;    // on the last host
  std::int64_t accelerators = 1;  // of a host, all of which the job holds
  // A scale-up domain that spans hosts: the hosts of it that the job takes; 1: it lies within one.
  std::int64_t hosts_per_domain = 1;
  std::int64_t domain_hosts = 1;  // that the domain has
};

// The layout lies on the cluster (unplaceable_reason).
HostPlan host_plan(const Scenario& scenario);

}  // namespace orrery
