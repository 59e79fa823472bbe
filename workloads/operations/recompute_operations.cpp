// SPDX-License-Identifier: Apache-2.0
// Builds what runs again before gradients: whole layers, or parts of them.
#include <algorithm>

#include "workloads/operations/layer_operations.h"
#include "workloads/stack/operation_recompute.h"

namespace orrery {

// Selective recompute of a part: what its forward did since operation `from` runs again before the
// gradients need it.
void LayerOperations::rerun(LayerProgram& p, RecomputeModule module, std::size_t from) const {
  const bool inside = module == RecomputeModule::moe_act ||
                      module == RecomputeModule::shared_experts;  // of an expert layer
  if (inside && layout_.recomputes(RecomputeModule::moe)) return;
  if (!shape_.training || !layout_.recomputes(module)) return;
  if (recomputes_by_operation(layout_, stack_)) return;  // runs all of them again anyway
  Segment again;
  for (std::size_t i = from; i < p.forward.operations.size(); ++i) {
    again.operations.push_back(p.forward.operations[i]);
    if (again.operations.back().kernel()) again.operations.back().label = Label::recompute;
  }
  const bool feeds_forward = module == RecomputeModule::mlp || module == RecomputeModule::moe ||
                             module == RecomputeModule::shared_experts;
  if (feeds_forward && stack_.recompute.stops_early) end_at_last_product(again);
  p.input_gradient.operations.insert(p.input_gradient.operations.end(), again.operations.begin(),
                                     again.operations.end());
}

// What a recomputed layer runs again before its backward; `selective` repeats attention's core
// only.
void LayerOperations::add_recompute(LayerProgram& p) const {
  p.recompute.host_time = p.forward.host_time;
  for (const Operation& o : p.forward.operations) {
    p.recompute.operations.push_back(o);
    if (o.kernel()) p.recompute.operations.back().label = Label::recompute;
  }
  if (stack_.recompute.stops_early) end_at_last_product(p.recompute);
}

// Everything but attention, the products whose outputs are kept and what other ranks sent: sums
// over tp, experts' and context parallelism's exchanges. A compiled layer leaves out what nothing
// needs: its last product, the addition of that product's output (the second operation, see
// norms()), and the product before a sum that is kept.
void LayerOperations::rerun_operations(LayerProgram& p, const LayerClass& layer) const {
  const std::vector<Operation>& forward = p.forward.operations;
  std::vector<Operation> again;
  const auto sums = [](const Operation& o) {
    const CollectiveOperation* c = o.collective();
    return c && c->group == GroupKind::tensor && c->kind == CollectiveKind::all_reduce;
  };
  // Without sequence parallelism the mixer's sum is no reduce-scatter and runs again as well.
  const auto sum = std::find_if(forward.begin(), forward.end(), sums);
  if (sum != forward.end() && layer.mixer.kind != MixerKind::none) again.push_back(*sum);
  for (const SeparateProduct& product : separate_products(model_, layer, layout_)) {
    if (product.kept || !product.needed) continue;
    if (product.reduced && shape_.sequence_parallel) continue;
    Operation o{.label = Label::recompute};
    o.work = Kernel{.work = {.kind = WorkKind::gemm,
                             .input = linear_format(),
                             .output = Format::bf16,
                             .block_scales = block_scales(),
                             .m = shape_.tokens,
                             .n = product.outputs,
                             .k = product.inputs},
                    .library = stack_.kernels.gemm};
    again.push_back(o);
  }
  for (std::size_t i = 0; i < forward.size(); ++i) {
    const Operation& o = forward[i];
    const Kernel* kernel = o.kernel();
    const CollectiveOperation* collective = o.collective();
    const bool gathers = collective && collective->group == GroupKind::tensor &&
                         collective->kind == CollectiveKind::all_gather;
    const bool kept = kernel && ((kernel->work.kind == WorkKind::gemm && o.label == Label::gemm) ||
                                 kernel->work.kind == WorkKind::attention_forward);
    if (i == 1 || kept || (!kernel && !gathers)) continue;
    again.push_back(o);
    if (kernel) again.back().label = Label::recompute;
  }
  const double share = static_cast<double>(again.size()) / static_cast<double>(forward.size());
  p.input_gradient.host_time += p.forward.host_time * std::min(1.0, share);
  p.input_gradient.operations.insert(p.input_gradient.operations.end(), again.begin(), again.end());
}

// Leaves out the last product of a layer or a feed-forward part, whose result backward does not
// need, with what sends that result on: the sum over tp, or the way back from the experts.
void LayerOperations::end_at_last_product(Segment& s) const {
  std::vector<Operation>& all = s.operations;
  const auto is_product = [](const Operation& o) {
    return o.kernel() && orrery::is_product(o.kernel()->work.kind);
  };
  const auto last = std::find_if(all.rbegin(), all.rend(), is_product);
  if (last == all.rend()) return;
  const auto at = static_cast<std::size_t>(all.rend() - last) - 1;
  const bool experts = all[at].kernel()->work.kind == WorkKind::grouped_gemm;
  const auto sends_rows = [](const CollectiveOperation& c) {
    return (c.group == GroupKind::expert && c.exchange.phase == ExchangePhase::combine) ||
           (c.group == GroupKind::expert_tensor && c.kind == CollectiveKind::reduce_scatter);
  };
  const auto sends = [&](const Operation& o) {
    const CollectiveOperation* c = o.collective();
    return c && (experts ? sends_rows(*c) : c->group == GroupKind::tensor && &o > &all[at]);
  };
  std::vector<Operation> kept;
  for (const Operation& o : all)
    if (&o != &all[at] && !sends(o)) kept.push_back(o);
  all = std::move(kept);
}

}  // namespace orrery
