// SPDX-License-Identifier: Apache-2.0
// Lowers a model and a batch to the operations of one inference step.
#pragma once

#include "workloads/layout/job.h"
#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/operations/program.h"
#include "workloads/stack/stack.h"

namespace orrery {

// One prefill (batch prompts of `sequence` tokens) or decode step (batch sequences, one token each,
// over `context` tokens of history); only `forward` segments are filled.
StepProgram lower_inference(const Model& model, const Job& job, const Layout& layout,
                            const Stack& stack);

}  // namespace orrery
