// SPDX-License-Identifier: Apache-2.0
// Holds what is simulated: a job with its stack and layout on a cluster.
#pragma once

#include <string>

#include "sim/base/text/enum_names.h"
#include "sim/engine/cluster.h"
#include "sim/engine/conditions.h"
#include "sim/engine/scattered_ranks.h"
#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {

// ideal: collectives disturb each other only where groups of one kind share NICs; flow: all that
// runs at once shares the links of the wiring, with its faults and background traffic.
enum class NetworkMode : std::uint8_t { ideal, flow };
inline constexpr auto network_mode_text = enum_names<NetworkMode>({"ideal", "flow"});

struct Scenario {
  Cluster cluster;
  Model model;
  Job job;
  Layout layout;
  Stack stack;
  NetworkMode network = NetworkMode::ideal;
  Conditions conditions;
  ScatteredRanks ranks = {};  // on which accelerators; contiguous where nothing else is said
};

// What the recipes of a stack may depend on, of a model on a cluster.
StackContext stack_context(const Cluster& cluster, const Model& model, const Job& job,
                           PrecisionRecipe precision);
// A stack of the catalogue ("nemo@26.02") as it is there.
Stack catalogue_stack(const std::string& name, const Cluster& cluster, const Model& model,
                      const Job& job, PrecisionRecipe precision);

}  // namespace orrery
