// SPDX-License-Identifier: Apache-2.0
// Prices every layer of a step once, on each speed that its stages have.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/step/segment_time.h"

namespace orrery {

// What one step is asked of. All must outlive what is priced.
struct StepCase {
  const StepContext& context;
  const Model& model;
  const Job& job;
  const Layout& layout;
  const Stack& stack;

  bool training() const { return is_training(job.task); }
  // The launch queue of a training pipeline takes what its stage's host dispatches ahead of it.
  bool runs_ahead() const { return stack.host.runs_ahead && training(); }
  std::int64_t chunks_per_stage() const {
    return training() && enters_at_both_ends(layout.schedule) ? 2 : layout.vpp;
  }
};

// The priced phases of a layer class.
struct LayerTime {
  PhaseTime forward, backward, input_gradient, weight_gradient, recompute;
};

// Layers priced for stages that nothing tells apart: a slow GPU or a fault slows its own stage.
struct SpeedClass {
  double speed = 1;        // share of the clock
  std::int64_t stage = 0;  // whose collectives they wait for; 0 where all stages are alike
  ResolvedDevice device;
  std::vector<LayerTime> classes;
  LayerTime embedding, head, module;
};

// What layouts share whose layers cost the same: everything that a step prices but for its chunks.
struct PricedLayers {
  Placement placement;
  DebugCalls debug;
  std::shared_ptr<const StepProgram> program;  // its chunks: of the layout that was lowered
  std::unique_ptr<Network> network;
  FlowNetwork* flow = nullptr;              // network, in flow mode
  std::vector<SpeedClass> speeds;           // distinct speeds of stages
  std::vector<std::size_t> speed_of_stage;  // index into `speeds`
};
// Places, lowers and prices a layout. `network` null: the context's.
PricedLayers price_layers(const StepCase& asked, std::unique_ptr<Network> network = nullptr);

PriceContext price_context(const StepCase& asked, const PricedLayers& layers,
                           const SpeedClass& speed);

}  // namespace orrery
