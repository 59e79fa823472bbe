// SPDX-License-Identifier: Apache-2.0
// Builds the traffic of context parallelism: keys and values that go round, rows traded for heads.
#include <algorithm>

#include "workloads/operations/layer_operations.h"

namespace orrery {

// Ranks hold other rows of every sequence. Either they trade them around attention, so that each
// has all rows of some heads, or keys and values visit the ranks that hold the queries;
// hierarchical layouts do the one among neighbours and the other across.
void LayerOperations::context_exchange(LayerProgram& p, const Mixer& mixer) const {
  if (layout_.cp == 1) return;
  const auto on_rank = [&](std::int64_t heads) {
    return static_cast<double>(std::max<std::int64_t>(1, heads / layout_.tp));
  };
  const double rows = static_cast<double>(shape_.tokens);
  const double heads = on_rank(mixer.heads);
  const double kv_heads = mixer.kind == MixerKind::mla ? heads : on_rank(mixer.kv_heads);
  const double keys = rows * kv_heads * static_cast<double>(mixer.qk_dim + mixer.v_dim);
  if (layout_.context_heads() > 1)
    trade_heads(p, GroupKind::context_heads,
                rows * heads * static_cast<double>(mixer.qk_dim) + keys,
                rows * heads * static_cast<double>(mixer.v_dim));
  if (layout_.context_rings() > 1) pass_keys(p, 2 * keys);
}

// One ring pass or gather of keys and values forward; keys, values and their gradients backward. A
// ring runs beside the attention of the blocks already there. `own` bytes are a rank's.
void LayerOperations::pass_keys(LayerProgram& p, double own) const {
  const double gathered = own * static_cast<double>(layout_.context_rings());
  const bool ring = layout_.context != ContextKind::all_gather;
  const double least = stack_.communication.context_exposed.get();
  const auto add = [&](Segment& s, CollectiveKind kind) {
    const auto pass = [&](double exposed) -> CollectiveOperation& {
      return collective(s, kind, GroupKind::context_rings, gathered, Label::context_comm, exposed);
    };
    pass(ring ? least : 1.0).told_again = ring;
    if (ring) pass(1.0).beside_compute = true;
  };
  add(p.forward, CollectiveKind::all_gather);
  if (!shape_.training) return;
  add(p.input_gradient, CollectiveKind::all_gather);
  add(p.input_gradient, CollectiveKind::reduce_scatter);
}

// DeepSpeed-Ulysses (Jacobs et al., 2023): `before` elements of a rank (queries, keys and values)
// go to the ranks of their heads, `after` (what attention makes of them) come back to those of
// their rows; gradients the other way. Nothing hides it. Elements are put in order of their ranks
// before they go and in order of the sequence when they have come: two copies.
void LayerOperations::trade_heads(LayerProgram& p, GroupKind group, double before,
                                  double after) const {
  constexpr double bytes = 2, copies = 2;
  const auto trade = [&](Segment& s, double elements) {
    collective(s, CollectiveKind::all_to_all, group, bytes * elements, Label::context_comm, 1.0);
    stream(s, WorkKind::copy, copies * bytes * elements, copies * bytes * elements,
           Label::elementwise);
  };
  for (const double elements : {before, after}) {
    trade(p.forward, elements);
    if (shape_.training) trade(p.input_gradient, elements);
  }
}

}  // namespace orrery
