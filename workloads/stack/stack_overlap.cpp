// SPDX-License-Identifier: Apache-2.0
// Says what of a stack holds for a layout: overlap of its traffic, graphs, norms that run again.
#include <algorithm>

#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {
LaunchMode launch_mode(const Stack& stack, const Layout& layout) {
  if (stack.host.launch != LaunchMode::scoped_graph) return stack.host.launch;
  const bool refused =
      layout.recompute == Recompute::full ||
      (stack.host.graphs_refuse_shards && layout.zero_stage >= 2) ||
      std::any_of(stack.host.graphs_refuse.begin(), stack.host.graphs_refuse.end(),
                  [&](RecomputeModule module) { return layout.recomputes(module); });
  return refused ? LaunchMode::eager : stack.host.launch;
}

NormModules norm_modules(const Stack& stack, const Layout& layout, const LayerClass& layer) {
  const bool in_graph =
      !stack.host.graphs_refuse.empty() && launch_mode(stack, layout) == LaunchMode::scoped_graph;
  const bool own = !stack.kernels.fused_norms;
  return {.mixer = layer.mixer.kind != MixerKind::none && !in_graph &&
                   (own || layer.mixer.kind == MixerKind::mla),
          .ffn = layer.ffn.kind != FfnKind::none && (own || layer.ffn.kind == FfnKind::moe)};
}

bool overlaps_gradients(const Stack& stack, const Layout& layout) {
  return stack.communication.gradient_overlap &&
         (stack.communication.muon_overlap || layout.optimizer != Optimizer::muon);
}
bool overlaps_parameters(const Stack& stack, const Layout& layout) {
  return stack.communication.parameter_overlap &&
         (stack.communication.muon_overlap || layout.optimizer != Optimizer::muon);
}

double tensor_exposed(const Stack& stack, const Layout& layout) {
  if (stack.communication.tensor_overlap_needs_rows && !layout.sequence_parallel) return 1.0;
  return stack.communication.tensor_exposed.get();
}

static bool cuts_products(const Stack& stack, const Layout& layout) {
  return stack.communication.tensor_pieces && layout.sequence_parallel && layout.tp > 1;
}

std::int64_t gathered_pieces(const Stack& stack, const Layout& layout) {
  return cuts_products(stack, layout) ? layout.tp : 1;
}

std::int64_t scattered_pieces(const Stack& stack, const Layout& layout) {
  constexpr std::int64_t splits = 4;  // num_splits of the method "pipeline"
  return cuts_products(stack, layout) ? splits : 1;
}

bool exchange_beside_passes(const Stack& stack, const Layout& layout) {
  if (pairs_directions(layout.schedule)) return true;
  const bool whole = layout.recompute == Recompute::full || layout.recomputes(RecomputeModule::moe);
  return stack.communication.exchange_beside_passes && !whole && (layout.pp == 1 || layout.vpp > 1);
}

namespace {
// Share of a stage's forwards, and of its backwards, that run alone in DualPipe's schedule
// (deepseek-ai/DualPipe, dualpipe.py). Of pp = 2 h stages and counted from the nearer end, stage k
// runs alone 2 (h - k - 1) forwards, then 2 (k + 1) of both directions by turns, then h - k - 1
// between backwards: 3 h - k - 1, and as many backwards. Their mean over k is 1.25 pp - 1/2, of as
// many forwards as microbatches. DualPipeV is that of 2 pp stages cut in half, where a stage runs
// both halves of a microbatch: 2.5 pp - 1/2 of twice as many.
double runs_alone(const Layout& layout, double microbatches) {
  const double halves = is_v_shaped(layout.schedule) ? 2 : 1;
  const double alone = 1.25 * halves * static_cast<double>(layout.pp) - 0.5;
  return std::min(1.0, alone / std::max(1.0, halves * microbatches));
}
}  // namespace

// DualPipe runs most forwards together with another microbatch's backward, and each one's exchange
// under the other's compute, which then shares the processors.
double expert_exposed(const Stack& stack, const Layout& layout, double microbatches) {
  const bool beside = exchange_beside_passes(stack, layout);
  const double alone = stack.communication.exchange_beside_passes && !beside
                           ? 1.0
                           : stack.communication.expert_exposed.get();
  if (!pairs_directions(layout.schedule)) return alone;
  const double single = runs_alone(layout, microbatches);
  return single * alone + (1 - single) * std::min(alone, stack.communication.overlap_cost.get());
}

}  // namespace orrery
