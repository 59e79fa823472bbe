// SPDX-License-Identifier: Apache-2.0
// Reads controllers of power of the catalogue: their thresholds, and the clocks that they set.
#pragma once

#include <string>
#include <vector>

namespace orrery {

// Shares of a limit, and of a device's full clock.
struct ThresholdPreset {
  std::string title, release;
  double first = 1, second = 1, release_below = 0;
  double low = 1, lower = 1, high = 1;
  std::vector<std::string> not_modelled = {};  // sentences without their full stops
};

// sim/engine/catalog/power_policies. By its name, a file, or the JSON of an entry. Error: unknown
// names with the nearest, keys, thresholds that are not in order, clocks above the full one.
ThresholdPreset load_threshold_preset(const std::string& name);

}  // namespace orrery
