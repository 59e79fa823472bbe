// SPDX-License-Identifier: Apache-2.0
// Steps a training that was lowered once; the same on contiguous ranks is stepped once too.
#include "sim/engine/prices/place_steps.h"

namespace orrery {

PlaceSteps::PlaceSteps(const Scenario& scenario)
    : scenario_(scenario),
      program_(lower_step(scenario.model, scenario.job, scenario.layout, scenario.stack)) {}

StepResult PlaceSteps::step_at(const ScatteredRanks& ranks, NetworkMode network) {
  const Scenario& s = scenario_;
  StepContext context = step_context(s.cluster);
  context.network = network;
  context.conditions = s.conditions;
  context.program = &program_;
  context.loaded = &loaded_;
  context.flows = &flows_;
  if (ranks.contiguous()) return step(context, s.model, s.job, s.layout, s.stack);
  context.ranks = &ranks;
  std::optional<StepResult>& least = contiguous_[static_cast<std::size_t>(network)];
  if (!least) least = step(contiguous_context(context), s.model, s.job, s.layout, s.stack);
  return scattered_step(context, s.model, s.job, s.layout, s.stack, *least);
}

}  // namespace orrery
