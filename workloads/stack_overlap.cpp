// Says what of a stack holds for a layout: overlap of its traffic, graphs, norms that run again.
#include <algorithm>

#include "workloads/model.h"
#include "workloads/stack.h"

namespace orrery {
LaunchMode launch_mode(const Stack& stack, const Layout& layout) {
  if (stack.launch != LaunchMode::scoped_graph) return stack.launch;
  const bool refused =
      layout.recompute == Recompute::full ||
      std::any_of(stack.graphs_refuse.begin(), stack.graphs_refuse.end(),
                  [&](RecomputeModule module) { return layout.recomputes(module); });
  return refused ? LaunchMode::eager : stack.launch;
}

NormModules norm_modules(const Stack& stack, const Layout& layout, const LayerClass& layer) {
  const bool in_graph =
      !stack.graphs_refuse.empty() && launch_mode(stack, layout) == LaunchMode::scoped_graph;
  const bool own = !stack.fused_norms;
  return {.mixer = layer.mixer.kind != MixerKind::none && !in_graph &&
                   (own || layer.mixer.kind == MixerKind::mla),
          .ffn = layer.ffn.kind != FfnKind::none && (own || layer.ffn.kind == FfnKind::moe)};
}

double tensor_exposed(const Stack& stack, const Layout& layout) {
  if (stack.tensor_overlap_needs_rows && !layout.sequence_parallel) return 1.0;
  return stack.tensor_exposed.get();
}

bool exchange_beside_passes(const Stack& stack, const Layout& layout) {
  if (pairs_directions(layout.schedule)) return true;
  const bool whole = layout.recompute == Recompute::full || layout.recomputes(RecomputeModule::moe);
  return stack.exchange_beside_passes && !whole && (layout.pp == 1 || layout.vpp > 1);
}

// DualPipe runs most forwards together with another microbatch's backward, and each one's exchange
// under the other's compute, which then shares the processors. On a stage, 1.25 passes a pipeline
// stage on average have no partner.
double expert_exposed(const Stack& stack, const Layout& layout, double microbatches) {
  const bool beside = exchange_beside_passes(stack, layout);
  const double alone = stack.exchange_beside_passes && !beside ? 1.0 : stack.expert_exposed.get();
  if (!pairs_directions(layout.schedule)) return alone;
  const double single =
      std::min(1.0, 1.25 * static_cast<double>(layout.pp) / std::max(1.0, microbatches));
  return single * alone + (1 - single) * std::min(alone, stack.overlap_cost.get());
}

}  // namespace orrery
