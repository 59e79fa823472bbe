// SPDX-License-Identifier: Apache-2.0
// Steps one training on many places, and keeps what they have in common.
#pragma once

#include <array>
#include <optional>

#include "sim/engine/network/flow_memory.h"
#include "sim/engine/network/loaded_transfer.h"
#include "sim/engine/scenario.h"
#include "sim/engine/step/step.h"

namespace orrery {

// One thread at a time.
class PlaceSteps {
 public:
  // The scenario must outlive it; where its ranks are does not count.
  explicit PlaceSteps(const Scenario& scenario);
  // step() of the scenario on these ranks, to the bit, but that its uses of the network are without
  // busy links and counts of flows.
  StepResult step_at(const ScatteredRanks& ranks, NetworkMode network);
  const Scenario& scenario() const { return scenario_; }

 private:
  const Scenario& scenario_;
  StepProgram program_;
  LoadedTransfers loaded_;
  FlowMemory flows_;
  std::array<std::optional<StepResult>, 2> contiguous_;  // by network
};

}  // namespace orrery
