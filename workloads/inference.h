// SPDX-License-Identifier: Apache-2.0
// Knows how a model and a batch become one inference step's operations.
#pragma once

#include "workloads/job.h"
#include "workloads/layout.h"
#include "workloads/model.h"
#include "workloads/stack.h"
#include "workloads/task_graph.h"

namespace orrery {

// One prefill (batch prompts of `sequence` tokens) or decode step (batch sequences, one token each,
// over `context` tokens of history); only `forward` segments are filled.
TrainingProgram lower_inference(const Model& model, const Job& job, const Layout& layout,
                                const Stack& stack);

}  // namespace orrery
