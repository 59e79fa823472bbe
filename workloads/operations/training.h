// SPDX-License-Identifier: Apache-2.0
// Lowers a model, a job, a layout and a stack to the operations of a training step.
#pragma once

#include <vector>

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/operations/program.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Operations of one microbatch through every layer class, with what lies on each pipeline position.
// The layout is valid (invalid_reason). Kernels and bytes are those of one rank.
StepProgram lower_training(const Model& model, const Job& job, const Layout& layout,
                           const Stack& stack);

// What lies on each pipeline position alone: `chunks` of the program above.
std::vector<ChunkProgram> lower_chunks(const Model& model, const Job& job, const Layout& layout,
                                       const Stack& stack);

}  // namespace orrery
