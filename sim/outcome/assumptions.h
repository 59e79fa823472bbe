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
  Assumption described;                 // without effects
  double value = 0, low = 0, high = 0;  // SI
  std::function<void(double)> set;      // writes into the scenario that it was collected from
};

// Every announced, estimated or assumed value in the scenario's device, calibration, fabric,
// collective costs, site and stack, in a fixed order. Setters are valid while `scenario` lives.
std::vector<UncertainValue> collect_uncertain(Scenario& scenario);

// What a prediction is made of, compared bit by bit when a value is perturbed.
struct Outputs {
  double step = 0, energy = 0, reserved = 0, rental = 0;
  bool operator==(const Outputs&) const = default;
};

// Values that move any output when they are moved to their low, their high or 10% either way, with
// the relative change of the step time at low and high, largest first.
std::vector<Assumption> find_assumptions(Scenario scenario,
                                         const std::function<Outputs(const Scenario&)>& evaluate);

// Relative half-widths below and above: effects joined in quadrature, as independent.
struct RelativeRange {
  double below = 0, above = 0;
};
RelativeRange join_effects(const std::vector<Assumption>& assumptions);

}  // namespace orrery
