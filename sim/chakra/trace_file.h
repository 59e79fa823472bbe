// SPDX-License-Identifier: Apache-2.0
// Knows the files of execution traces: one a rank, NAME.RANK.et, messages with their length before
// them, and the groups beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/chakra/trace.h"

namespace orrery {

// The name of the groups' file that stands beside the traces of a folder.
inline constexpr const char* trace_groups_name = "comm_group.json";

// Nodes of all ranks together that are read or written at most.
inline constexpr std::int64_t most_trace_nodes = 20'000'000;

// A file's bytes: metadata first, then nodes in their order.
std::string trace_bytes(const std::vector<TraceNode>& nodes, std::int64_t ranks_per_domain);
// {"NAME": [ranks]}, as ASTRA-sim reads it with --comm-group-configuration.
std::string trace_groups_text(const std::vector<TraceGroup>& groups);

// Reads a folder, or files whose names end in .RANK.et, one for each rank from 0 on. `groups`
// empty: the folder's own, else
// those that the traces have inside. Error: a rank that is missing, a message that is cut
// off, a node of a type that the schema does not have, a value that no trace can have.
Traces read_traces(const std::vector<std::filesystem::path>& places,
                   const std::filesystem::path& groups);

}  // namespace orrery
