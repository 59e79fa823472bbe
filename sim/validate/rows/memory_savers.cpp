// SPDX-License-Identifier: Apache-2.0
// Orders recompute and narrow moments as programs and their launch scripts do.
#include "sim/validate/rows/memory_savers.h"

#include <algorithm>

namespace orrery {
namespace {

// Of a program that runs single modules again: experts' launch scripts name cheap ones, moments in
// 16 bits beside them, and none of them recomputes whole layers (catalog/recipes, settings.csv).
std::vector<MemorySaver> savers_of_experts(const Model& model, const Stack& stack,
                                           Optimizer optimizer) {
  using enum RecomputeModule;
  const bool latent = std::any_of(model.classes.begin(), model.classes.end(),
                                  [](const auto& c) { return c.mixer.kind == MixerKind::mla; });
  const auto& optimizers = stack.choices.optimizers;
  const bool narrow = optimizer == Optimizer::adam_fp32 &&
                      StackChoices::allows(optimizers, Optimizer::adam_bf16_moments);
  const Optimizer small = narrow ? Optimizer::adam_bf16_moments : optimizer;
  const auto modules = [small](RecomputeModules again) {
    return MemorySaver{{Recompute::selective, again}, small};
  };
  std::vector<MemorySaver> savers = {{{}, optimizer}};
  if (narrow) savers.push_back({{}, small});
  if (latent) savers.push_back(modules({mla_up_proj}));
  RecomputeModules more = latent ? RecomputeModules{moe_act, layernorm, mla_up_proj}
                                 : RecomputeModules{moe_act, layernorm};
  savers.push_back(modules(more));
  for (const RecomputeModule next : {mlp, moe}) {
    more.add(next);
    savers.push_back(modules(more));
  }
  savers.push_back({{.recompute = Recompute::full}, small});
  return savers;
}

}  // namespace

std::vector<MemorySaver> memory_savers(const Model& model, const Stack& stack,
                                       Optimizer optimizer) {
  const auto& modules = stack.choices.recompute_modules;
  if (model.has_experts() && StackChoices::allows(modules, RecomputeModule::moe_act) &&
      stack.defaults.recompute == RecomputeChoice{})
    return savers_of_experts(model, stack, optimizer);
  std::vector<MemorySaver> savers;
  for (const Recompute choice : {Recompute::none, Recompute::selective, Recompute::full})
    if (choice >= stack.defaults.recompute.recompute)
      savers.push_back({{choice, stack.defaults.recompute.modules}, optimizer});
  return savers;
}

}  // namespace orrery
