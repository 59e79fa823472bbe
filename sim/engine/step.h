// Knows how long a step takes: the one executor behind every prediction, rank by rank class.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/ticks.h"
#include "sim/engine/collectives.h"
#include "sim/engine/pipeline_run.h"
#include "sim/engine/scenario.h"
#include "workloads/task_graph.h"

namespace orrery {

// Where one stage's step went; the labels sum to the step (law 13).
struct StageBreakdown {
  std::array<Ticks, label_count> label{};
  Ticks& operator[](Label l) { return label[static_cast<std::size_t>(l)]; }
  Ticks operator[](Label l) const { return label[static_cast<std::size_t>(l)]; }
  Ticks total() const;
};

struct StepResult {
  Ticks step;  // from the start of one step to the start of the next
  std::vector<StageBreakdown> stages;
  Joules energy_per_gpu;  // mean over stages, idle power included
  double throttle = 1;    // sustained over burst time of tensor work; 1: not throttled
  Bytes scale_up_bytes, scale_out_bytes;  // sent by one GPU of the busiest stage per step
};

// What step() needs in plain numbers, resolved once per cluster and stack and shared by all
// layouts.
struct StepContext {
  const Fabric& fabric;
  const CollectiveCosts& collective_costs;
  ResolvedDevice device;
  const Calibration& calibration;
  double clock_factor = 1;
  BytesPerSecond host_memory_bandwidth = {};  // one accelerator's share of its host's
};
StepContext step_context(const Cluster& cluster);

// Times one training or inference step on the ideal network. The layout is valid. Pure; under 0.3
// ms.
StepResult step(const StepContext& context, const Model& model, const Job& job,
                const Layout& layout, const Stack& stack);

// Costs of the pipeline's passes, as step() computes them: for traces.
struct StepPipeline {
  PipelineShape shape;
  PipelineCosts costs;
};
StepPipeline step_pipeline(const StepContext& context, const Model& model, const Job& job,
                           const Layout& layout, const Stack& stack);

}  // namespace orrery
