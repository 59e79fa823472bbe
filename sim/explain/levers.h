// SPDX-License-Identifier: Apache-2.0
// Tells what limits a step, phase by phase, and what faster parts of the machine would buy.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/explain/what_if.h"

namespace orrery {

// One line of "what would it buy": the layout is kept, the machine or its software is better.
struct Counterfactual {
  std::string name;  // "twice the NVLink domain"
  WhatIf edit = {};  // none for those that time labels alone answer ("no pipeline bubble")
  bool applies = true;
  std::string note = {};  // why it does not apply; else what it takes for granted
  Seconds step = {};      // equal to the scenario's where it does not apply
  double faster = 0;      // steps per second over the scenario's, less one
  // Faster kernels: the same when their energy falls with their time.
  std::optional<double> faster_at_most = std::nullopt;
  bool needs_advice = false;  // pays through other layouts than this one: ask for advice again
};

// A fixed list in a fixed order. About a dozen steps on the scenario's network.
std::vector<Counterfactual> counterfactuals(const Scenario& scenario);

// What a phase may run faster with.
enum class Resource : std::uint8_t {
  tensor_cores,
  other_units,  // vector and exponential units, L2
  memory,
  scale_up,
  network,
  host,
  power,
};
inline constexpr int resource_count = enumerator_count<Resource>();
std::string_view to_text(Resource);  // "tensor cores", "HBM bandwidth", ...

// Share of a phase's time that goes with a resource: 1 when twice the resource halves it, 0 when
// the phase does not feel it. From a change of two percent. Between 0 and 1 for whole steps and for
// passes; what hides behind passes (gradients, bubble) may answer more than in proportion, or grow
// when what hides it gets faster.
struct PhaseLimit {
  std::string phase;  // "step", "forward", "backward", "gradients", "optimizer", "pipeline", "rest"
  Seconds time;
  double share = 0;  // of the step
  std::array<double, resource_count> elasticity{};
  // Of the largest elasticity; none below a twentieth. Tensor cores that the power limit slows
  // down (it has an elasticity of its own) are the power limit's.
  std::optional<Resource> limit;
  double fixed = 0;      // share that no resource explains: latencies, starts of kernels
  std::string sentence;  // "Forward takes 31% of the step and is limited by ..."
  double of(Resource r) const { return elasticity[static_cast<std::size_t>(r)]; }
};

// The whole step first, then its phases on the stage whose passes take longest. Phases that take
// no time are left out. "pipeline" is bubble and exposed messages, "gradients" what data
// parallelism leaves visible after the last pass, "rest" the host's work at the end of a step.
std::vector<PhaseLimit> phase_limits(const Scenario& scenario);

}  // namespace orrery
