// SPDX-License-Identifier: Apache-2.0
// Knows what the network can see of a placement: how many accelerators lie together at each level,
// whichever hosts they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/scattered_ranks.h"
#include "topologies/slots.h"

namespace orrery {

// Placements that have one price. Groups of a level that have equal parts are one entry with a
// count; parts stand largest first, a part-filled host last within its group.
struct PlacementClass {
  // The tree of counts, from the site inwards: of a group how many kinds of parts it has, then of
  // each kind its count and its tree; of a host its accelerators.
  std::vector<std::int32_t> key;
  std::int64_t gpus = 0;
  // As the same number of accelerators lies from accelerator 0 on: every part but the last full.
  bool contiguous = true;
  // Of the same SlotShape: the others follow from the key.
  bool operator==(const PlacementClass& other) const { return key == other.key; }
};

// Grants in any order, each host in one of them, with 1 to gpus_per_host accelerators a host. Work
// goes with the runs of equal hosts, however many hosts a run has: a price that is known is found
// under 1000 ns (bench_placement: class_of_a_few_runs).
PlacementClass placement_class(const Grants& grants, const SlotShape& shape);

// Where the ranks of any placement of the class are taken to be: its largest group lies at
// accelerator 0, the others behind it, each at the first accelerators of its switches or of its
// host. Empty for a contiguous one. Groups at the end of the cluster are taken to be whole, so that
// the last may reach beyond it.
ScatteredRanks canonical_ranks(const PlacementClass& placed, const SlotShape& shape);

}  // namespace orrery
