// SPDX-License-Identifier: Apache-2.0
// Edits a scenario to hypothetical kernels and machines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/scenario.h"

namespace orrery {

// Kernels of one kind that take 1/factor of their time. Names: those of work kinds ("gemm",
// "attention-forward", "norm"), and groups of them: "products" (gemm and grouped-gemm), "attention"
// (forward, backward, decode) and "memory-bound" (all else that runs on the device).
struct KernelSpeedup {
  std::string name;
  double factor = 1;
  bool operator==(const KernelSpeedup&) const = default;
};
std::vector<std::string> speedup_names();
// "gemm=1.15,attention=1.5": factors above 0, each name once. A work kind's own factor wins over
// its group's. Errors name the nearest known name.
std::vector<KernelSpeedup> kernel_speedups_from(std::string_view text);

// What a faster kernel draws. At a board's power limit that decides what it is worth: doing the
// same operations sooner it must run at a lower clock, where they cost less, and gains about three
// quarters of what it would below the limit.
enum class SpeedupEnergy : std::uint8_t {
  as_before,  // the same operations, sooner: at the same clock they cost the joules that they did
  with_time,  // fewer operations (Strassen, AlphaTensor): joules of tensor work fall as time does
};

// Factors of 1 change nothing, to the bit. All are above 0; more is faster.
struct WhatIf {
  std::vector<KernelSpeedup> kernels = {};
  SpeedupEnergy kernel_energy = SpeedupEnergy::as_before;
  double tensor_rate = 1;  // peaks of all formats; energy of an operation at full clocks stays
  double unit_rate = 1;    // vector and exponential units, L2
  double memory_bandwidth = 1, memory_capacity = 1;
  double scale_up_bandwidth = 1;  // of every accelerator
  double scale_up_domain = 1;     // accelerators in a domain, rounded to a whole number
  double network_bandwidth = 1;   // NICs, uplinks of all tiers, links between sites
  double host_speed = 1;          // what the host does takes 1/host_speed of its time
  std::optional<Watts> power_limit = std::nullopt;  // of one accelerator
  bool whole_graphs = false;  // the iteration is one CUDA graph: the host waits for nothing
  bool operator==(const WhatIf&) const = default;
};

// The scenario, cluster or stack with the edits. A power limit must lie above idle power and needs
// a published one to start from; factors must be above 0: Errors else. Tensor work under another
// limit runs at another clock and its energy follows (hw_models/power.h); kernels that wait for
// memory keep their speed and draw what they drew, up to the limit.
Scenario with(Scenario scenario, const WhatIf& edit);
Cluster with(Cluster cluster, const WhatIf& edit);
Stack with(Stack stack, const WhatIf& edit);
// The same in place.
void change(Scenario& scenario, const WhatIf& edit);

// Sentences: what the edits take for granted. Empty for none.
std::vector<std::string> premises(const WhatIf& edit);

// Step time of a scenario whose layout is valid.
Seconds step_time(const Scenario& scenario);

}  // namespace orrery
