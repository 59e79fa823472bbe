// Builds what runs again before gradients: whole layers, or parts of them.
#include <algorithm>

#include "workloads/layer_operations.h"

namespace orrery {

// Selective recompute of a part: what its forward did since operation `from` runs again before the
// gradients need it.
void LayerOperations::rerun(LayerProgram& p, RecomputeModule module, std::size_t from) const {
  const bool inside = module == RecomputeModule::moe_act ||
                      module == RecomputeModule::shared_experts;  // of an expert layer
  if (inside && layout_.recomputes(RecomputeModule::moe)) return;
  if (!shape_.training || !layout_.recomputes(module)) return;
  const auto count = p.forward.operations.size();
  for (std::size_t i = from; i < count; ++i) {
    p.input_gradient.operations.push_back(p.forward.operations[i]);
    Operation& again = p.input_gradient.operations.back();
    if (again.kind == OperationKind::kernel) again.label = Label::recompute;
  }
}

// What a recomputed layer runs again before its backward; `selective` repeats attention's core
// only.
void LayerOperations::add_recompute(LayerProgram& p) const {
  p.recompute.host_seconds = p.forward.host_seconds;
  for (const Operation& o : p.forward.operations) {
    p.recompute.operations.push_back(o);
    if (o.kind == OperationKind::kernel) p.recompute.operations.back().label = Label::recompute;
  }
  if (stack_.recompute_stops_early) end_at_last_product(p.recompute);
}

// Leaves out the last product of a layer, whose result backward does not need, with what sends that
// result on: the sum over tp, or the way back from the experts.
void LayerOperations::end_at_last_product(Segment& s) const {
  std::vector<Operation>& all = s.operations;
  const auto is_product = [](const Operation& o) {
    return o.kind == OperationKind::kernel &&
           (o.kernel.work.kind == WorkKind::gemm || o.kernel.work.kind == WorkKind::grouped_gemm);
  };
  const auto last = std::find_if(all.rbegin(), all.rend(), is_product);
  if (last == all.rend()) return;
  const auto at = static_cast<std::size_t>(all.rend() - last) - 1;
  const bool experts = all[at].kernel.work.kind == WorkKind::grouped_gemm;
  const auto sends = [&](const Operation& o) {
    return o.kind == OperationKind::collective &&
           (experts ? o.group == GroupKind::expert && o.exchange.phase == ExchangePhase::combine
                    : o.group == GroupKind::tensor && &o > &all[at]);
  };
  std::vector<Operation> kept;
  for (const Operation& o : all)
    if (&o != &all[at] && !sends(o)) kept.push_back(o);
  all = std::move(kept);
}

}  // namespace orrery
