// SPDX-License-Identifier: Apache-2.0
// Builds what a multi-token prediction module does before its layer (DeepSeek-V3, arXiv 2412.19437,
// 2.2; Megatron-Core's multi_token_prediction.py).
#include <algorithm>

#include "workloads/operations/layer_operations.h"

namespace orrery {

// The column-parallel projection's output is gathered over its columns; with sequence parallelism
// each rank then keeps its rows, and their gradients are gathered before backward.
void LayerOperations::module_projection(LayerProgram& p) const {
  const Linear linear{.m = shape_.tokens,
                      .n = std::max<std::int64_t>(1, model_.hidden / layout_.tp),
                      .k = 2 * model_.hidden,
                      .gathered = shape_.sequence_parallel};
  // Both halves of its input.
  tensor_enter(p);
  tensor_enter(p);
  forward_linear(p.forward, linear, Label::gemm);
  backward_linear(p, linear, Label::gemm, job_.task == Task::lora);
  if (layout_.tp == 1) return;
  const double outputs = 2.0 * static_cast<double>(shape_.tokens * model_.hidden);
  const double exposed = tensor_exposed(stack_, layout_);
  collective(p.forward, CollectiveKind::all_gather, GroupKind::tensor, outputs, Label::tensor_comm,
             exposed);
  if (shape_.sequence_parallel)
    collective(p.input_gradient, CollectiveKind::all_gather, GroupKind::tensor, outputs,
               Label::tensor_comm, exposed);
}

LayerProgram LayerOperations::module() const {
  LayerProgram p;
  const double rows = static_cast<double>(shape_.norm_tokens * model_.hidden);
  for (int input = 0; input < 2; ++input) {
    stream(p.forward, WorkKind::norm, 2 * rows, 2 * rows, Label::elementwise);
    stream(p.input_gradient, WorkKind::norm, 4 * rows, 2 * rows, Label::elementwise);
  }
  // Joined to one input; its gradient's halves are read where they lie.
  stream(p.forward, WorkKind::elementwise, 4 * rows, 4 * rows, Label::elementwise);
  module_projection(p);
  p.forward.host_time = host_time(0, p.forward);
  p.input_gradient.host_time = host_time(0, p.input_gradient);
  // Run again as a whole: what may be left out at the end of it is the layer's.
  p.recompute.host_time = p.forward.host_time;
  for (const Operation& o : p.forward.operations) {
    p.recompute.operations.push_back(o);
    if (o.kernel()) p.recompute.operations.back().label = Label::recompute;
  }
  append(p.backward, p.input_gradient);
  append(p.backward, p.weight_gradient);
  const LayerProgram words = embedding();
  append(p.forward, words.forward);
  append(p.backward, words.backward);
  append(p.weight_gradient, words.weight_gradient);
  return p;
}

}  // namespace orrery
