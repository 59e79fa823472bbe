// SPDX-License-Identifier: Apache-2.0
// Reads policies of the catalogue: what a release of a scheduler does, and what of it is left out.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/jobs/policy.h"

namespace orrery {

struct PolicyPreset {
  std::string name, title, release;
  FleetPolicy rules = {};
  std::vector<std::string> not_modelled = {};  // sentences without their full stops
};

// sim/engine/catalog/policies.
std::vector<std::string> policy_preset_names();
// By its name, a file, or the JSON of an entry. Error: unknown names with the nearest, keys, rules.
PolicyPreset load_policy_preset(const std::string& name);

}  // namespace orrery
