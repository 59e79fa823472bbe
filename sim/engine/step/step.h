// SPDX-License-Identifier: Apache-2.0
// Knows how long a step takes: the one executor behind every prediction, rank by rank class.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/units/ticks.h"
#include "sim/engine/network/flow_network.h"
#include "sim/engine/network/loaded_transfer.h"
#include "sim/engine/pipeline/run.h"
#include "sim/engine/scenario.h"
#include "workloads/operations/task_graph.h"

namespace orrery {

// Where one stage's step went; the labels sum to the step (law 13).
struct StageBreakdown {
  std::array<Ticks, label_count> label{};
  Ticks& operator[](Label l) { return label[static_cast<std::size_t>(l)]; }
  Ticks operator[](Label l) const { return label[static_cast<std::size_t>(l)]; }
  Ticks total() const;
};

// A collective that a stage runs `count` times a step, and what it does to the network.
struct NetworkUse {
  Label label = Label::data_comm;
  Collective collective;
  double count = 0;
  FlowPrice price;
};

struct StepResult {
  Ticks step;  // from the start of one step to the start of the next
  std::vector<StageBreakdown> stages;
  Joules energy_per_gpu;  // mean over stages, idle power included
  double throttle = 1;    // sustained over burst time of tensor work; 1: not throttled
  Bytes scale_up_bytes, scale_out_bytes;  // sent by one GPU of the busiest stage per step
  std::vector<NetworkUse> network;        // flow network only: of the stage that sends most
};

// Index of the stage that waits least for others: it paces the pipeline.
std::int64_t pacing_stage(const std::vector<StageBreakdown>& stages);

// What step() needs in plain numbers, resolved once per cluster and stack and shared by all
// layouts.
struct StepContext {
  const Fabric& fabric;
  const CollectiveCosts& collective_costs;
  ResolvedDevice device;
  const Calibration& calibration;
  double clock_factor = 1;
  BytesPerSecond host_memory_bandwidth = {};  // one accelerator's share of its host's
  NetworkMode network = NetworkMode::ideal;
  Conditions conditions = {};
  LoadedTransfers* loaded = nullptr;  // remembers for many layouts on the same fabric
  // What the same model, job, layout and stack were lowered to before; nullptr: they are lowered.
  const TrainingProgram* program = nullptr;
};
// Of a healthy cluster on the ideal network.
StepContext step_context(const Cluster& cluster);
// With the scenario's network and conditions. The scenario must outlive it.
StepContext step_context(const Scenario& scenario);

// Every rate that follows the clock, times `factor`, and so what the power limit leaves for work: a
// board that is slower at full clocks is as much slower at its limit.
void scale_clock(ResolvedDevice& device, double factor);

// Expected speed of the slowest of `boards` healthy boards over the mean board's. Boards of one
// kind differ (voltage that a chip needs, leakage, cooling), a calibration is that of a typical
// one, and a synchronous step waits for the slowest: within a microbatch its tensor-parallel group,
// its stage within a few, all others at the gradients. Expected extreme of normal variables; 1 for
// one board or without a spread.
double slowest_board(double spread, std::int64_t boards);

// What step() prices: the passes of every distinct layer and chunk.
TrainingProgram lower_step(const Model& model, const Job& job, const Layout& layout,
                           const Stack& stack);

// Times one training or inference step. The layout is valid. Pure; a mean under 0.3 ms
// (bench_step: executor_405b_16384_h100).
StepResult step(const StepContext& context, const Model& model, const Job& job,
                const Layout& layout, const Stack& stack);

// A kernel of a step, and how often it runs in one pipeline (one rank of every stage).
struct UsedKernel {
  Kernel kernel;
  double count = 0;
};
// All kernels that step() prices, equal ones more than once; the optimizer's is that of stage 0.
std::vector<UsedKernel> step_kernels(const StepContext& context, const Model& model, const Job& job,
                                     const Layout& layout, const Stack& stack);

// Costs of the pipeline's passes, as step() computes them: for traces.
struct StepPipeline {
  PipelineShape shape;
  PipelineCosts costs;
};
StepPipeline step_pipeline(const StepContext& context, const Model& model, const Job& job,
                           const Layout& layout, const Stack& stack);

}  // namespace orrery
