// SPDX-License-Identifier: Apache-2.0
// Lists the kernels of a step: what its prediction of compute rests on.
#pragma once

#include <vector>

#include "sim/base/work.h"
#include "sim/engine/step/context.h"

namespace orrery {

// A kernel of a step, and how often it runs in one pipeline (one rank of every stage).
struct UsedKernel {
  Kernel kernel;
  double count = 0;
};
// All kernels that step() prices, equal ones more than once; the optimizer's is that of stage 0.
std::vector<UsedKernel> step_kernels(const StepContext& context, const Model& model, const Job& job,
                                     const Layout& layout, const Stack& stack);

}  // namespace orrery
