// SPDX-License-Identifier: Apache-2.0
// Remembers what flows of a job take with its domains side by side, for many places of the job.
#pragma once

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "sim/engine/network/flow_network.h"

namespace orrery {

// A scattered job's flows are held against those of its domains side by side (FlowNetwork::better),
// which many places have in common. For one fabric and its costs; one thread at a time.
class FlowMemory {
 public:
  // Of the healthy network of `side_by_side` with these options, a network that knows what it was
  // asked before. It lives as long as the memory.
  FlowNetwork& network(const Fabric& fabric, const CollectiveCosts& costs,
                       const JobGround& side_by_side, const Conditions& conditions,
                       const FlowOptions& options);

  // The flows of a scattered job on a healthy network, of the place that was asked for last.
  // Networks that hash nothing have them in common.
  LaidFlows& place(const Fabric& fabric, const JobGround& job, std::uint64_t seed,
                   FlowOptions options);

 private:
  struct Known {
    JobGround job;
    std::uint64_t seed = 1;
    std::unique_ptr<FlowNetwork> network;
  };
  std::list<LaidFlows> places_;  // of one job, flows hashed and spread; latest first
  std::vector<Known> known_;     // a few: fullest domains and counts of domains differ seldom
};

}  // namespace orrery
