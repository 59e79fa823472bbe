// SPDX-License-Identifier: Apache-2.0
// Knows how the parts of a cluster's time are called.
#pragma once

#include <vector>

#include "sim/outcome/fleet/fleet_measures.h"

namespace orrery {

struct SharePart {
  const char *key, *name, *meaning;
  double FleetShares::*member;
  bool of_parts = false;  // only where jobs ask for parts of GPUs
};
// In the order of FleetShares.
const std::vector<SharePart>& share_parts();

}  // namespace orrery
