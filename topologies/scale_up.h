// SPDX-License-Identifier: Apache-2.0
// Knows what one scale-up domain is made of: switch chips, links, optical circuits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/parts.h"

namespace orrery {

// Links of one accelerator to chip `chip` of `chips` that share its `links`. What does not divide
// goes to the outer chips first: 18 links over four NVSwitches are 5 + 4 + 4 + 5 on HGX H100.
std::int64_t links_to_chip(std::int64_t links, std::int64_t chips, std::int64_t chip);

// One level of a switched domain with a given number of members.
struct ScaleUpLevelShape {
  std::string role, part;     // role: "nvswitch", then "nvswitch-2"; others' "scale-up-switch"
  std::int64_t reach = 0;     // accelerators under a full group
  std::int64_t groups = 0;    // with these members, the last maybe part full
  std::int64_t switches = 0;  // in one group
  // Links of one group to the next level, every accelerator's share passing through (non-blocking):
  // as many as come from below in a full group. 0 in the last level.
  std::int64_t up = 0;
};

// A domain with `members` of its accelerators in use, never more than it has.
struct ScaleUpShape {
  std::int64_t members = 0;
  std::int64_t links = 1;  // of one accelerator; 1 bundle where the number is not published
  BytesPerSecond link;     // per direction
  bool direct = false;     // members joined pairwise (mesh), no switch between
  std::vector<ScaleUpLevelShape> levels;
};
ScaleUpShape scale_up_shape(const ScaleUp& scale_up, std::int64_t members);

// Everything that one domain of `members` adds up to. Bisection and diameter as in FabricParts.
struct DomainParts {
  std::vector<SwitchCount> switches;
  std::vector<CableRun> cables;
  BytesPerSecond bisection;
  int diameter = 0;
  std::vector<std::string> notes;
};
DomainParts domain_parts(const ScaleUp& scale_up, std::int64_t members);

}  // namespace orrery
