// SPDX-License-Identifier: Apache-2.0
// Bounds a step from below, from its priced passes or from its priced layers alone.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/base/units/units.h"
#include "workloads/layout/layout.h"
#include "workloads/operations/program.h"

namespace orrery {

struct PricedLayers;
struct PricedStep;
struct StepCase;

// No step of the layout is shorter, no step takes less energy.
struct StepLeast {
  Seconds time;
  Joules energy_per_gpu;
};

using WorthMore = std::function<bool(const StepLeast&)>;

// The least layer of a model.
struct LightestLayer {
  Seconds passes;  // forward and input gradient (backward, where that is one)
  // What a stage surely waits for each such layer before it. Where backwards are split that is the
  // forward alone: its weight gradients may run while the pipeline drains.
  Seconds waits;
};

// What holds for layouts with the same passes, however their layers lie on stages. Where some run
// again, for those that repeat as many.
struct WholeModel {
  Seconds time;   // one microbatch, forward and backward through all layers
  Joules energy;  // the same
  LightestLayer lightest;
  Seconds update;    // of all parameters that a pipeline's ranks own, at the memory's full rate
  Seconds overhead;  // of a step
  // No step of the layout is shorter: the mean stage's passes and update, and half of what the
  // first and the last microbatch surely wait for the other stages.
  Seconds least(const Layout& layout, const Job& job, const Model& model,
                Partition partition) const;
};

// A microbatch's passes through all layers of a model, so many of which run again.
struct WholePasses {
  ChunkProgram all;   // the layers as one chunk
  bool dual = false;  // both directions of a dual schedule hide each other's exchanges
  Seconds time;
  Joules energy;
};
// What was found of whole models on the same layers. Many layouts of a search run as many layers
// again as another.
struct KnownWholes {
  std::vector<WholePasses> passes;
  std::optional<LightestLayer> lightest;
};

// The least of layouts that end differently: in ZeRO stage below 3, bucket, offloaded optimizer.
// Without any, or where that is not worth more: whatever they are.
StepLeast least_step(const PricedStep& step, const std::vector<Layout>& endings,
                     const WorthMore& worth = {});

// `chunks`: of the layout, by pipeline position; nothing of it is offloaded. `known`: of all
// layouts whose layers cost the same.
WholeModel whole_model(const StepCase& asked, const PricedLayers& layers,
                       const std::vector<ChunkProgram>& chunks, KnownWholes& known);

}  // namespace orrery
