// SPDX-License-Identifier: Apache-2.0
// Knows how long a collective's bytes take on a healthy, empty fabric that blocks or hashes.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "sim/engine/collectives/collectives.h"
#include "sim/engine/flows/ground.h"
#include "sim/engine/network/laid_flows.h"

namespace orrery {

// At least alone.transfer, and at least what the most loaded link needs for its bytes when all
// groups of the kind run at once (one block of groups: others repeat it). On tapered tiers, between
// sites and between groups of a dragonfly that is what the flow network takes. Where flows are
// hashed it is the expected worst link (topologies/routing/hashing.h) instead of one draw. Equal to
// alone.transfer for groups under one leaf and on open fabrics: sprayed and non-blocking.
Seconds loaded_transfer(const Collective& collective, const CollectiveTime& alone,
                        const Fabric& fabric);

// The same for a scattered job, all of whose groups run where its domains are; no less than if
// these were side by side: what others leave free of a switch today is theirs tomorrow.
Seconds loaded_transfer(const Collective& collective, const CollectiveTime& alone,
                        const Fabric& fabric, const JobGround& job);

// What a collective's loads depend on: neither its bytes nor its latency.
struct LoadKey {
  CollectiveKind kind;
  CollectiveAlgorithm algorithm;
  GroupShape group;
  double rate;  // of a busiest rank's NICs
  bool operator==(const LoadKey&) const = default;
};

// Answers of loaded_transfer for many layouts on one fabric, as factors of alone.transfer (they do
// not depend on the bytes). Any thread may ask.
class LoadedTransfers {
 public:
  Seconds of(const Collective& collective, const CollectiveTime& alone, const Fabric& fabric);

 private:
  std::mutex mutex_;
  std::vector<std::pair<LoadKey, double>> known_;  // a few hundred shapes: linear search
};

// What the most loaded link of a scattered job needs where its domains are, loaded_transfer()'s
// other side, for the collectives of one job.
class ScatteredTransfers {
 public:
  // Of flows that are spread where the fabric hashes them; `laid` must outlive it.
  explicit ScatteredTransfers(LaidFlows& laid) : laid_(laid) {}
  Seconds of(const Collective& collective, const CollectiveTime& alone, const Fabric& fabric);
  // Flows of a job that nobody else asks for.
  static LaidFlows lay(const Fabric& fabric, const JobGround& job);

 private:
  LaidFlows& laid_;
  std::vector<std::pair<LoadKey, double>> known_;
};

}  // namespace orrery
