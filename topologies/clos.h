// SPDX-License-Identifier: Apache-2.0
// Knows the shape of a switched scale-out fabric: how many switches and links each tier has.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/fabric.h"

namespace orrery {

// One tier of one plane, counted from the NIC. Accelerator a is in group a / reach of every tier.
//
// Tier 0 has switches / rails leaves for each rail of a group, rail by rail. Which of a rail's
// leaves a NIC is on says routing.h; all of them have equally many ports.
//
// Tier 1: every leaf has `parallel` links to every spine of its group; on a rail-only fabric to
// those of its rail, the switches / rails from rail x switches / rails on.
//
// Higher tiers: switch i of every group of tier t is joined to the same switches of tier t + 1, the
// switches(t + 1) / switches(t) from i times as many on, `parallel` links to each.
//
// Dragonfly+: the groups of the second, last tier are joined pairwise by `parallel` links each, out
// of the switches x up that one has.
struct ClosTier {
  std::int64_t reach = 0;     // accelerators under one full group; the last tier: all of them
  std::int64_t groups = 0;    // at this number of accelerators, the last maybe part full
  std::int64_t switches = 0;  // in one full group; tier 0: a multiple of the rails
  std::int64_t down = 0;      // links down of one switch (tier 0: NIC ports), in use or not
  std::int64_t up = 0;        // links up of one switch; 0 in the last tier
  std::int64_t parallel = 1;  // links between a switch and one switch above that it is joined to
};

// Wired as published fabrics are (topologies.md of the reference; tests/topologies/counts.json): a
// leaf has as many equal links to every spine of its group as divide its uplinks; with three tiers
// spine i of every pod is joined to the same cores. `tiers` is empty without scale-out switches.
//
// It has the tiers that this many accelerators need: several leaves (one a rail) need spines, but
// not where rails stay apart; more than a tier reaches or its ports join need the next. A tier that
// is not the last keeps ports for its links up, so its groups may reach less than the wiring says
// of it as the last: a radix of 64 joins 2,048 in two tiers, and has pods of 1,024 under a third.
struct ClosShape {
  std::int64_t accelerators = 0, planes = 1, rails = 1;
  double ports_per_accelerator = 1;  // NIC ports in one plane; below 1 neighbours share a NIC
  std::vector<ClosTier> tiers;
  bool direct = false;  // dragonfly+: groups of the last tier are joined to each other
  // Several sites: each has a whole fabric, and a group of the last tier is a site (not if direct).
  bool sites = false;
  std::int64_t switches(std::size_t tier) const;  // in all planes at this size
  // Cables from this tier to the next, all planes; of a last tier: 0, direct: between groups.
  std::int64_t links_up(std::size_t tier) const;
};

// NICs of so many accelerators: ports in one plane.
std::int64_t ports_of(const ClosShape& shape, std::int64_t accelerators);

// At least one accelerator. Where a tier's radix is unknown, the shape that its reach implies: one
// switch as large as it must be. Error when the wiring cannot join so many.
ClosShape clos_shape(const Fabric& fabric, std::int64_t accelerators);

// What so many accelerators need where nothing else shares their network, for counting and buying:
// no tiers inside one scale-up domain; one switch a plane where it has ports for every NIC,
// whatever the rails; below one group of leaves no more links up than the NICs in use ask for.
// From a full group on it is clos_shape(), which stays what flows are routed by: a job on few
// accelerators usually runs on a part of a larger machine.
ClosShape bought_shape(const Fabric& fabric, std::int64_t accelerators);

// The leaf and spine rule of two-tier fabrics of one radix: the least spines that reach all leaf
// uplinks and of which every leaf has the same number of links to each. Reproduces the published
// SuperPOD tables. Error when the endpoints pass radix^2 / 2.
struct TwoTier {
  std::int64_t leaves, spines, uplinks;  // uplinks: leaf to spine, all together
};
TwoTier two_tier(std::int64_t endpoints, std::int64_t radix);
// Three tiers of one radix, full pods counted: max radix^3 / 4 endpoints, above that an Error.
struct ThreeTier {
  std::int64_t leaves, spines, cores, leaf_spine, spine_core;
};
ThreeTier three_tier(std::int64_t endpoints, std::int64_t radix);

}  // namespace orrery
