// SPDX-License-Identifier: Apache-2.0
// Knows the ranks of every group that a layout makes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "workloads/layout/layout.h"
#include "workloads/operations/program.h"

namespace orrery {

// Groups of a step: those of layers, then those that only gradients and parameters use.
enum class StepGroup : std::uint8_t {
  tensor,
  context,
  context_heads,
  context_rings,
  expert,
  expert_tensor,
  expert_ranks,
  shard,
  expert_shard,
  shard_replica,
  expert_shard_replica,
  replicas,         // all that hold the same dense parameters
  expert_replicas,  // the same of experts
  ends,             // first and last stage: both hold the word table
};
inline constexpr int step_group_count = enumerator_count<StepGroup>();

StepGroup step_group(GroupKind kind);

// The group's ranks that this rank is one of, rising. Of `ends` none for a stage in between.
std::vector<std::int64_t> group_ranks(const Layout& layout, StepGroup group, std::int64_t rank);

}  // namespace orrery
