// SPDX-License-Identifier: Apache-2.0
// Knows how a predicted step becomes execution traces, one for each rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sim/chakra/stage_trace.h"
#include "sim/chakra/trace.h"
#include "sim/engine/scenario.h"

namespace orrery {

// A step's nodes, stage by stage, with the groups of all ranks.
struct StepTraces {
  Layout layout;
  std::vector<StageTrace> stages;
  std::int64_t ranks_per_domain = 0;
  std::vector<TraceGroup> groups;
  std::vector<std::vector<std::int32_t>>
      group_of;  // [rank][StepGroup] into groups; -1: of one rank
};

// Of a scenario whose layout is valid. Error where the job has more than most_trace_ranks ranks or
// the step too many nodes.
inline constexpr std::int64_t most_trace_ranks = 4096;
StepTraces step_traces(const Scenario& scenario);

// One rank's nodes.
std::vector<TraceNode> rank_nodes(const StepTraces& traces, std::int64_t rank);

// Writes step.RANK.et for every rank into the folder, and the groups beside them. Error where
// traces of another step with more ranks lie there.
void write_step_traces(const Scenario& scenario, const std::filesystem::path& folder);
// Whether it could: for commands that work long before.
void check_step_traces(const Scenario& scenario, const std::filesystem::path& folder);

}  // namespace orrery
