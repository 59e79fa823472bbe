// SPDX-License-Identifier: Apache-2.0
// Makes of a layout that was run what a search keeps of it.
#include "sim/advise/search/expand.h"
#include "sim/engine/memory_fit.h"

namespace orrery {

Bytes peak_memory(const SearchGround& ground, const NumericRecipe& recipe, const Layout& layout) {
  return memory_fit(ground.model, ground.job, layout, recipe.stack, ground.device).peak;
}

double score(const SearchGround& ground, Seconds time, Joules energy) {
  // The price of an accelerator-hour is the same for every layout: only its hours count.
  if (ground.objective != Objective::energy) return time.si();
  return (energy + ground.host_power * time).si() / tokens_per_step(ground.job, 1);
}

Found found_of(const SearchGround& ground, const Place& place, const Layout& layout,
               const StepResult& run) {
  const double gpus = static_cast<double>(layout.gpus());
  Found found{.candidate = {.layout = layout,
                            .step_time = to_seconds(run.step),
                            .energy_per_step = run.energy_per_gpu * gpus,
                            .peak_memory = peak_memory(ground, ground.recipe(place), layout)},
              .place = place};
  found.candidate.tokens_per_second_per_gpu =
      tokens_per_step(ground.job, 1) / found.candidate.step_time.si() / gpus;
  found.score = score(ground, found.candidate.step_time, found.candidate.energy_per_step);
  return found;
}

}  // namespace orrery
