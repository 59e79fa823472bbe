// SPDX-License-Identifier: Apache-2.0
// Knows how well a host suits a task, by each rule.
#pragma once

#include "sim/engine/packing/fill.h"
#include "sim/engine/packing/shared_state.h"

namespace orrery {

struct FillScore {
  std::int32_t points = -1;  // 0 to 100; -1: the host has no room
  std::int32_t gpu = 0;      // of which a task takes a part; -1: any that has room is drawn
};

FillScore fill_score(FillRule rule, const HostState& host, const SharedTask& task,
                     const std::vector<UsualTask>& usual);

}  // namespace orrery
