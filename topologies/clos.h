// Knows the shape of a switched scale-out fabric: how many switches and links each tier has.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/fabric.h"

namespace orrery {

// One tier of one plane, counted from the NIC. A group is what `reach` accelerators share: its
// switches together see all NICs of these accelerators (rails: one switch per rail, or several).
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
struct ClosShape {
  std::int64_t accelerators = 0, planes = 1, rails = 1;
  double ports_per_accelerator = 1;  // NIC ports in one plane; below 1 neighbours share a NIC
  std::vector<ClosTier> tiers;
  std::int64_t switches(std::size_t tier) const;  // in all planes at this size
  std::int64_t links_up(std::size_t tier) const;  // cables from this tier to the next, all planes
};

// At least one accelerator. Where a tier's radix is unknown, the shape that its reach implies.
ClosShape clos_shape(const Fabric& fabric, std::int64_t accelerators);

// The leaf and spine rule of two-tier fabrics of one radix: the least spines that reach all leaf
// uplinks and of which every leaf has the same number of links to each. Reproduces the published
// SuperPOD tables. Error when the endpoints pass radix^2 / 2.
struct TwoTier {
  std::int64_t leaves, spines, uplinks;  // uplinks: leaf to spine, all together
};
TwoTier two_tier(std::int64_t endpoints, std::int64_t radix);
// Three tiers of one radix at full pods: max radix^3 / 4 endpoints.
struct ThreeTier {
  std::int64_t leaves, spines, cores, leaf_spine, spine_core;
};
ThreeTier three_tier(std::int64_t endpoints, std::int64_t radix);

}  // namespace orrery
