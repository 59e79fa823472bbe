// SPDX-License-Identifier: Apache-2.0
// Knows how much of what chunks keep for their backward a stage holds at once.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/layout/pipeline.h"

namespace orrery {

// Bytes that a chunk keeps of one microbatch, by kind.
inline constexpr std::size_t kept_kinds = 5;
using Kept = std::array<double, kept_kinds>;

// The most of each kind at its own moment, and of all kinds at one moment.
struct Held {
  Kept worst{};
  double worst_sum = 0;
};

// Of stage `index` with these chunks, of which `in_flight` are held at most.
Held held_activations(const PipelineShape& shape, const std::vector<Kept>& chunks,
                      std::int64_t index, std::int64_t in_flight);

}  // namespace orrery
