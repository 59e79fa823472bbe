// SPDX-License-Identifier: Apache-2.0
// Knows what a wiring is made of at a given size: switches, cables, optics, and what they add up
// to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/clos.h"

namespace orrery {

// backplane: traces, a midplane or the cable cartridge that comes with a board or a rack.
enum class Medium : std::uint8_t { backplane, copper, optical };
std::string_view to_text(Medium);

// Switches of one kind at one place: {"leaf", "qm9700", 32}.
struct SwitchCount {
  std::string role;  // "nvswitch", "leaf", "spine", "core", "ocs", "long-haul"
  std::string part;  // name in hw_models/catalog/switches; empty: not named
  std::int64_t count = 0;
  std::int64_t ports_used = 0, ports = 0;  // of one switch, at this fabric's link rate; 0: unknown
};
// Equal cables between two layers, all planes together. A cable joins one port to one port and
// carries `rate` in each direction; optical ones have a transceiver at each end.
struct CableRun {
  std::string from, to;  // roles, "accelerator" and "nic" among them
  Medium medium = Medium::copper;
  BytesPerSecond rate;
  std::int64_t cables = 0, transceivers = 0;
};
struct FabricParts {
  std::int64_t accelerators = 0, domains = 0, nics = 0, planes = 1, rails = 1;
  std::vector<SwitchCount> switches;  // scale-up first, then by tier
  std::vector<CableRun> cables;
  // The least capacity, per direction, that joins the first and the last half of the accelerators:
  // of one domain (scale-up), and of all domains, whole ones on each side (scale-out). No other
  // halves have less where groups are full. Line rates, no efficiency.
  BytesPerSecond scale_up_bisection, scale_out_bisection;
  // The most switches on a shortest path between two accelerators (torus: the most hops).
  int scale_up_diameter = 0, scale_out_diameter = 0;
  std::vector<std::string> notes;  // what was assumed where the wiring is silent

  std::int64_t switch_count(std::string_view role) const;
  std::int64_t cable_count(std::string_view from, std::string_view to) const;
};

// "leaf", "spine", "core", then "tier-4".
std::string tier_role(std::size_t tier);

// Which leaf the NICs of an accelerator are on, in every plane; all of them on one. The rule of
// routing.h: NIC's number in the domain % rails is its rail, and NICs fill the leaves of a rail in
// order. A part full group has the leaves that its NICs need.
struct LeafPlan {
  struct Place {
    std::int64_t group = 0, rail = 0, leaf = 0;  // leaf: of its rail in its group
  };
  LeafPlan(const Fabric& fabric, const ClosShape& clos);  // `clos` must outlive it; has tiers
  std::int64_t leaves_of_rail(std::int64_t group) const;
  Place of(std::int64_t accelerator) const;

  const ClosShape& shape;
  std::int64_t domain = 1;
  std::int64_t per_rail = 1;   // leaves of one rail in a full group
  std::int64_t in_domain = 1;  // NICs of one rail in a domain (those of an accelerator count once)

 private:
  std::int64_t shared_nic(std::int64_t accelerator) const;
};

// In time O(tiers), whatever the number. Error when the fabric cannot join so many (more than the
// last tier's ports reach, more than a domain without scale-out).
FabricParts fabric_parts(const Fabric& fabric, std::int64_t accelerators);

// The most accelerators that the wiring joins, looked for up to `most`, which it is where the
// wiring does not end before.
std::int64_t most_joined(const Fabric& fabric, std::int64_t most);

}  // namespace orrery
