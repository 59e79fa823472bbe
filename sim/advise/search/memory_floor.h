// SPDX-License-Identifier: Apache-2.0
// Knows whether the layouts of a part of the grid can fit at all, before any of them is looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/advise/search/expand.h"

namespace orrery {

// Shard options whose passes are alike without a network: those of ZeRO-3, or the others.
std::vector<std::int32_t> shards_like(const Family& family, std::int32_t first);

// Parameters, gradients and optimizer states lie somewhere: no layout of the place's family has a
// fullest stage with less of them, however its layers are divided.
Bytes least_static(const SearchGround& ground, const Place& family);

// Whether none fits of the layouts with the place's micro-batch, sequence parallelism, exchange and
// recompute and a shard option like its own, whatever their schedule, sharding and offload.
bool all_too_large(const SearchGround& ground, const Place& place);

}  // namespace orrery
