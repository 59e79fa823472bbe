// SPDX-License-Identifier: Apache-2.0
// Keeps the flows of a job's groups as they are laid out on the links, for all their collectives.
#pragma once

#include <list>

#include "sim/engine/flows/ground.h"

namespace orrery {

// Collectives of a group that go the same way differ in rates and bytes only: their flows are laid
// out once. One thread at a time.
class LaidFlows {
 public:
  // `fabric` must outlive it.
  LaidFlows(const Fabric& fabric, JobGround job, Conditions conditions, const FlowOptions& options);

  struct Laid {
    FlowGround ground;  // with nothing else on it
    FlowRange range;
  };
  // FlowGround::add() of a collective, to the bit. Valid until the next call.
  const Laid& of(const Collective& collective, const CollectiveTime& alone);
  bool is_of(const JobGround& job, bool spread_hashed) const {
    return options_.spread_hashed == spread_hashed && job_ == job;
  }

 private:
  // What tells which domain sends to which, and how much (domain_edges).
  struct Way {
    bool message = false;  // send_receive, which no algorithm changes
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
    std::int64_t domains = 1, domain_step = 1;
    bool operator==(const Way&) const = default;
  };
  struct Kept {
    Way way;
    Laid laid;
  };

  const Fabric& fabric_;
  JobGround job_;
  Conditions conditions_;
  FlowOptions options_;
  std::list<Kept> kept_;  // the last ones, latest first
  std::size_t uses_ = 0;  // of links by their flows
};

}  // namespace orrery
