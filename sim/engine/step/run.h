// SPDX-License-Identifier: Apache-2.0
// Holds what one call of step() builds on its way: shared by the files that make up the executor.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/pipeline/run.h"
#include "sim/engine/step/kernels.h"
#include "sim/engine/step/pipeline.h"
#include "sim/engine/step/segment_time.h"
#include "sim/engine/step/series.h"
#include "workloads/operations/training.h"

namespace orrery {

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

// Passes of one distinct chunk.
struct ChunkTime {
  ChunkProgram program;
  ChunkProgram partner;       // whose passes run beside its own where the schedule pairs them
  std::size_t speed = 0;      // index of its speed class
  bool dual = false;          // both directions of a dual schedule hide each other's exchanges
  bool only_its_own = false;  // what it moves to the host depends on the whole layout
  PassTicks forward, backward, input_gradient, weight_gradient;
  double scale_up_bytes = 0, scale_out_bytes = 0;
};

// What layouts share whose layers cost the same: everything that a step prices but for its chunks.
struct PassPrices {
  Placement placement;
  std::shared_ptr<const TrainingProgram> program;  // its chunks: of the layout that was lowered
  std::unique_ptr<Network> network;
  FlowNetwork* flow = nullptr;       // network, in flow mode
  std::vector<double> stage_speeds;  // by stage; with `speeds` found by the first run
  std::vector<SpeedClass> speeds;    // distinct speeds of stages
  std::deque<ChunkTime> chunks;      // that runs so far met: most are like another layout's
};
// Places and lowers a layout. `network` null: the context's.
PassPrices open_prices(const StepContext& context, const Model& model, const Job& job,
                       const Layout& layout, const Stack& stack,
                       std::unique_ptr<Network> network = nullptr);

// Everything that one call of step() builds on its way.
class StepRun {
 public:
  // All must outlive the run.
  StepRun(const StepContext& context, const Model& model, const Job& job, const Layout& layout,
          const Stack& stack);
  // With prices of a layout whose layers cost the same (same_passes).
  StepRun(const StepContext& context, const Model& model, const Job& job, const Layout& layout,
          const Stack& stack, PassPrices& prices);

  StepPipeline pipeline();
  // The least of layouts that end differently: in ZeRO stage below 3, bucket, offloaded optimizer.
  // Without any, or where that is not worth more: whatever they are.
  StepLeast least(const std::vector<Layout>& endings, const WorthMore& worth = {});
  // `lightest`: of the layers, the same for all layouts whose layers cost the same; found where it
  // is not known.
  WholeModel whole_model(std::optional<Seconds>& lightest) const;
  StepResult training();
  StepResult inference();
  std::vector<UsedKernel> kernels();

 private:
  StepRun(const StepContext& context, const Model& model, const Job& job, const Layout& layout,
          const Stack& stack, PassPrices* shared, std::unique_ptr<PassPrices> own);

  // What data parallelism and the optimizer add after a stage's last pass.
  struct Tail {
    std::int64_t stage = 0;
    Ticks data, optimizer, overhead;
    Ticks host;  // dispatching the calls that reduce gradients, where the host runs ahead
    double scale_up_bytes = 0, scale_out_bytes = 0;
    std::function<void(const Collective&, double count)> uses;  // told of every collective
    Ticks total() const { return data + optimizer + overhead; }
  };

  // What a layout decides about the end of a step alone.
  struct Ending {
    int zero_stage = 1;
    Bytes bucket;
    double offloaded = 0;  // share of the optimizer's states that the host updates
  };
  static Ending ending_of(const Layout& l) {
    return {l.zero_stage, l.bucket, l.offload_optimizer ? l.optimizer_offload_fraction : 0};
  }
  // What comes before a stage's tail at the least.
  struct LeastStage {
    Ticks passes;  // from the step's start to the end of the stage's passes
    Ticks chain;   // to the end of the last pass of stage 0; 0: not bounded so
    StageRun last;
  };
  std::vector<LeastStage> least_stages(double& energy);
  // Of parameters that all their replicas share, with the memory's whole bandwidth.
  Seconds update_at_full_rate(double parameters, double expert_parameters) const;

  // The launch queue of a training pipeline takes what its stage's host dispatches ahead of it.
  bool runs_ahead() const { return stack_.host_runs_ahead && is_training(job_.task); }
  DebugCalls debug_calls() const;
  Seconds closing_calls() const;
  // When hosts that run ahead let each stage end its last pass: each dispatches its own passes one
  // after the other from the start, and a last backward waits for that of the stage after it.
  std::vector<Ticks> host_ends(const StepPipeline& pipeline, const PipelineRun& run,
                               const std::vector<Tail>& tails) const;
  void price_layers();
  void price_chunks();  // once
  // Priced once for all runs on the same prices.
  const ChunkTime& known_chunk(const ChunkProgram& program, const ChunkProgram& partner,
                               std::size_t speed);
  LayerTime price_layer(const LayerProgram& layer, const PriceContext& prices) const;
  PriceContext price_context(const SpeedClass& speed);
  std::vector<double> stage_speeds() const;
  // The priced work of a chunk's passes; backward, or its halves where the schedule splits it.
  struct ChunkPhases {
    PhaseTime forward, backward, input_gradient, weight_gradient;
  };
  ChunkPhases chunk_phases(const ChunkProgram& chunk, std::size_t speed) const;
  void cap_exchanges(ChunkPhases& own, const ChunkProgram& partner, std::size_t speed) const;
  // `context_beside` false: without the context-parallel traffic beside compute, of which layers
  // together can hide less than each alone.
  ChunkTime time_chunk(const ChunkProgram& chunk, const ChunkProgram& partner, std::size_t speed,
                       bool context_beside = true) const;
  // Forward and backward, or forward, input and weight gradient, without the traffic beside.
  std::array<PassTicks, 3> passes_of(const ChunkProgram& chunk) const;
  Seconds lightest_layer(const ChunkProgram& like) const;
  const ChunkTime& chunk_time(std::int64_t stage, std::int64_t chunk) const;
  // One message between neighbouring stages: an activation or what comes back for it.
  std::optional<Collective> send(double bytes) const;
  Ticks send_time(std::int64_t stage, double bytes);
  // Faults and others' traffic tell stages apart.
  bool stages_differ() const;
  // What gradient buckets and the last backward passes of a stage cost each other.
  struct Delays {
    Seconds passes, gradients;
  };
  Delays gradient_contention(std::int64_t stage);
  Delays gradient_contention(const ChunkTime& chunk);
  std::vector<NetworkUse> network_use(std::int64_t stage);
  // Ranks that hold the same parameters: all of them, those that share one copy in `ways` shards,
  // and those that hold the same shard of different copies.
  struct Replicas {
    const GroupShape &all, &shard, &copies;
    double ways;
  };
  Replicas dense_replicas() const;
  Replicas expert_replicas() const;
  // The traffic of buckets one after the other: `calls` of them.
  Seconds bucketed(CollectiveKind kind, const GroupShape& group, Bytes total, double calls,
                   Tail& tail);
  double bucket_calls(const GroupShape& replicas, Bytes total) const;
  Bytes bucket(const GroupShape& group) const {
    if (ending_.bucket > Bytes(0)) return ending_.bucket;
    return std::max(stack_.bucket.get(),
                    stack_.bucket_per_rank.get() * static_cast<double>(group.size));
  }
  Tail tail(const StageRun& run, std::int64_t stage);
  Seconds gradient_time(std::int64_t stage, Tail& tail);
  Seconds parameter_time(std::int64_t stage, Tail& tail);
  double own_parameters(std::int64_t stage) const;   // that one rank updates
  Kernel update_kernel(std::int64_t stage) const;    // of the optimizer
  double update_products(std::int64_t stage) const;  // that one rank runs
  Seconds optimizer_time(std::int64_t stage) const;
  Seconds offloaded_update(double parameters) const;
  double host_link_seconds(const ChunkProgram& chunk) const;
  double stage_parameters(std::int64_t stage) const;
  double stage_expert_parameters(std::int64_t stage) const;
  std::int64_t chunks_per_stage() const {
    return is_training(job_.task) && layout_.schedule == Schedule::dual_pipe ? 2 : layout_.vpp;
  }

  const StepContext& context_;
  const Model& model_;
  const Job& job_;
  const Layout& layout_;
  Ending ending_;
  const Stack& stack_;
  std::unique_ptr<PassPrices> own_;  // where no prices are shared
  PassPrices& prices_;
  const Placement& placement_;
  Network* network_;
  const TrainingProgram& program_;
  FlowNetwork* flow_;  // network_, in flow mode
  const std::vector<SpeedClass>& speeds_;
  std::vector<ChunkProgram> chunks_;           // of this layout
  std::vector<const ChunkTime*> distinct_;     // distinct chunks, of the prices
  std::vector<std::size_t> chunk_index_;       // [stage * chunks_per_stage + chunk] into distinct_
  std::vector<std::optional<Delays>> delays_;  // of distinct chunks, as they are asked for
};

}  // namespace orrery
