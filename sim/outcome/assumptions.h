// SPDX-License-Identifier: Apache-2.0
// Knows which values that are not facts a prediction depends on, and by how much (law 12).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/outcome/prediction.h"

namespace orrery {

// One uncertain value of a scenario, addressed by its path, with a way to replace it.
struct UncertainValue {
  std::string path;
  double value = 0, low = 0, high = 0;    // SI
  std::function<Assumption()> described;  // without effects
  std::function<void(double)> set;        // writes into the scenario that it was collected from
};

// Every announced, estimated or assumed value in the scenario's device, calibration, fabric,
// collective costs, site and stack, in a fixed order. Setters and descriptions are valid while
// `scenario` lives.
std::vector<UncertainValue> collect_uncertain(Scenario& scenario);

// What a prediction is made of, compared bit by bit when a value is perturbed.
struct Outputs {
  double step = 0, energy = 0, reserved = 0, rental = 0;
  bool operator==(const Outputs&) const = default;
};

// Values that move any output when they are moved to their low, their high or 10% either way, with
// the relative change of the step time at low and high, largest first. Values that probably do not
// matter together are moved together: where no output changes by a bit under several such moves,
// none of them matters; else the half of them that does is looked for. `used_curves` (names) says
// which curves of the calibration the step reads, as far as the caller knows: a guess costs time
// only, never a name.
std::vector<Assumption> find_assumptions(Scenario scenario,
                                         const std::function<Outputs(const Scenario&)>& evaluate,
                                         const std::vector<std::string>& used_curves = {});

// Half-widths below and above, as logarithms of ratios of times: effects joined in quadrature, as
// independent.
struct LogRange {
  double below = 0, above = 0;
};
LogRange join_effects(const std::vector<Assumption>& assumptions);

}  // namespace orrery
