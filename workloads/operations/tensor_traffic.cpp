// SPDX-License-Identifier: Apache-2.0
// Builds the collectives of tensor parallelism around a pair of linear layers.
#include <cmath>

#include "workloads/operations/layer_operations.h"

namespace orrery {

CollectiveOperation& LayerOperations::collective(Segment& s, CollectiveKind kind, GroupKind group,
                                                 double bytes, Label label, double exposed) const {
  CollectiveOperation c{.kind = kind, .group = group, .bytes = Bytes(bytes), .exposed = exposed};
  if (group == GroupKind::tensor && kind == CollectiveKind::all_reduce && !shape_.training)
    c.library = stack_.communication.inference_all_reduce.value_or(c.library);
  if (group == GroupKind::tensor && shape_.training)
    c.rank_wait = stack_.host.rank_wait.get() * std::log2(static_cast<double>(layout_.tp));
  s.operations.push_back({.label = label, .work = c});
  return std::get<CollectiveOperation>(s.operations.back().work);
}

// Before a column-parallel layer: with sequence parallelism the rows are gathered, and gathered
// again for the weight gradient; without it the input gradient is all-reduced (Megatron's f). What
// is gathered for quantised products moves as they read it.
void LayerOperations::tensor_enter(LayerProgram& p, bool quantised) const {
  if (layout_.tp == 1) return;
  const double elements = static_cast<double>(shape_.tokens * model_.hidden);
  const double bytes = 2 * elements, gathered = (quantised ? gathered_bytes() : 2) * elements;
  const double exposed = shape_.training ? tensor_exposed(stack_, layout_) : 1.0;
  if (shape_.sequence_parallel) {
    collective(p.forward, CollectiveKind::all_gather, GroupKind::tensor, gathered,
               Label::tensor_comm, exposed);
    if (job_.task != Task::lora)
      collective(p.input_gradient, CollectiveKind::all_gather, GroupKind::tensor, gathered,
                 Label::tensor_comm, exposed);
    collective(p.input_gradient, CollectiveKind::reduce_scatter, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
  } else if (shape_.training) {
    collective(p.input_gradient, CollectiveKind::all_reduce, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
  }
}

// After a row-parallel layer (Megatron's g).
void LayerOperations::tensor_leave(LayerProgram& p) const {
  if (layout_.tp == 1) return;
  const double bytes = 2.0 * static_cast<double>(shape_.tokens * model_.hidden);
  const double exposed = shape_.training ? tensor_exposed(stack_, layout_) : 1.0;
  if (shape_.sequence_parallel) {
    collective(p.forward, CollectiveKind::reduce_scatter, GroupKind::tensor, bytes,
               Label::tensor_comm, exposed);
    collective(p.input_gradient, CollectiveKind::all_gather, GroupKind::tensor,
               bytes * gathered_bytes() / 2, Label::tensor_comm, exposed);
  } else {
    collective(p.forward, CollectiveKind::all_reduce, GroupKind::tensor, bytes, Label::tensor_comm,
               exposed);
  }
}

}  // namespace orrery
