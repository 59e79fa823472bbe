// SPDX-License-Identifier: Apache-2.0
// Lists what a program may have done to make a run fit whose recompute nobody tells.
#pragma once

#include <vector>

#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {

// What a program does to make a job fit.
struct MemorySaver {
  RecomputeChoice recompute;
  Optimizer optimizer = Optimizer::adam_fp32;
};

// In the order in which the program would have tried them; `optimizer` is its usual one.
std::vector<MemorySaver> memory_savers(const Model& model, const Stack& stack, Optimizer optimizer);

}  // namespace orrery
