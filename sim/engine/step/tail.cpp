// SPDX-License-Identifier: Apache-2.0
// Times buckets, the optimizer's update and the calls that close a step.
#include "sim/engine/step/tail.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hw_models/kernel/kernel_time.h"
#include "sim/engine/step/overlap.h"
#include "sim/engine/step/pipeline.h"
#include "workloads/parameters/state_memory.h"

namespace orrery {
namespace {

using Told = std::function<void(const Collective&, double count)>;

// How often a step reduces all gradients. ZeRO-2 keeps no more of them than its shard, so each
// microbatch's are reduced as its own backward goes (DeepSpeed issue 2252: "gradient reduction is
// required after every backward"; Megatron-FSDP's optim_grads); else they add up first.
double gradient_reductions(const PricedStep& step, const Ending& ending) {
  const StepCase& asked = step.asked;
  return ending.zero_stage == 2 ? static_cast<double>(asked.layout.microbatches(asked.job)) : 1.0;
}

// The data-parallel traffic of one stage. What its buckets send and cost the host goes to `out`.
class StageTraffic {
 public:
  StageTraffic(const PricedStep& step, const Ending& ending, std::int64_t stage, Tail& out,
               const Told& told = {})
      : step_(step),
        ending_(ending),
        stage_(stage),
        trained_(step.chunks.trained(stage)),
        trained_experts_(step.chunks.trained_experts(stage)),
        reductions_(gradient_reductions(step, ending)),
        out_(out),
        told_(told) {}

  Seconds gradient_time();  // of one reduction of all; gradient_reductions() of them move bytes
  Seconds parameter_time();
  double trained() const { return trained_ + trained_experts_; }

 private:
  double bucket_calls(const GroupShape& replicas, Bytes total) const;
  // The traffic of buckets one after the other: `calls` of them, all of it so many `times` a step.
  Seconds bucketed(CollectiveKind kind, const GroupShape& group, Bytes total, double calls,
                   double times = 1);

  const PricedStep& step_;
  const Ending& ending_;
  std::int64_t stage_;
  double trained_, trained_experts_;  // parameters
  double reductions_;
  Tail& out_;
  Told told_;  // of every collective
};

// Gradients and parameters move in buckets, whose size goes with all ranks that hold them.
double StageTraffic::bucket_calls(const GroupShape& replicas, Bytes total) const {
  const Stack& stack = step_.asked.stack;
  const bool at_once = ending_.zero_stage >= 1 && stack.sharding.sharded_at_once;
  return at_once ? 1.0 : std::max(1.0, std::ceil(total / bucket_size(ending_, stack, replicas)));
}

Seconds StageTraffic::bucketed(CollectiveKind kind, const GroupShape& group, Bytes total,
                               double calls, double times) {
  if (group.size <= 1 || total <= Bytes(0)) return {};
  const Collective bucket_of{.kind = kind, .group = group, .bytes = total / calls};
  const CollectiveTime& t = step_.layers.network->price(bucket_of, stage_);
  if (told_) told_(bucket_of, times * calls);
  out_.scale_up_bytes += times * calls * t.scale_up_bytes;
  out_.scale_out_bytes += times * calls * t.scale_out_bytes;
  const Seconds debug = calls * step_.layers.debug.of(group);
  if (ending_.zero_stage >= 1) return calls * t.time + debug;
  out_.host += to_ticks(debug);
  return calls * t.time;
}

// Shards are reduced inside the ranks that share a copy, then each over the copies (FSDP's hybrid
// sharding; Megatron-Core's distributed optimizer instances, distributed/param_and_grad_buffer.py).
Seconds StageTraffic::gradient_time() {
  if (ending_.zero_stage == 3) return {};
  const Model& model = step_.asked.model;
  const Layout& layout = step_.asked.layout;
  const Stack& stack = step_.asked.stack;
  const Placement& placement = step_.layers.placement;
  const double element = bytes_per_element(stack.sharding.gradient_format);
  const auto reduce = [&](const Replicas& over, double parameters) {
    const Bytes bytes(parameters * element);
    const double calls = bucket_calls(over.all, bytes);
    if (ending_.zero_stage == 0)
      return bucketed(CollectiveKind::all_reduce, over.all, bytes, calls);
    return bucketed(CollectiveKind::reduce_scatter, over.shard, bytes, calls, reductions_) +
           bucketed(CollectiveKind::all_reduce, over.copies, bytes / over.ways, calls, reductions_);
  };
  Seconds time = reduce(dense_replicas(layout, placement), trained_);
  time += reduce(expert_replicas(layout, placement), trained_experts_);
  // Both ends of the model hold the word table, as embedding and head or for MTP modules, unless
  // they lie on one stage.
  const bool two_tables = model.tied_embeddings || trained_modules(model, step_.asked.job) > 0;
  const bool apart = layout.pp > 1 && !holds_two_chunks(layout.schedule);
  if (two_tables && apart && (stage_ == 0 || stage_ == layout.pp - 1)) {
    const double vocabulary = vocabulary_parameters(model, stack, layout);
    time +=
        bucketed(CollectiveKind::all_reduce, placement.embedding, Bytes(vocabulary * element), 1);
  }
  return time;
}

Seconds StageTraffic::parameter_time() {
  if (ending_.zero_stage == 0 || ending_.zero_stage == 3) return {};
  const Layout& layout = step_.asked.layout;
  const double element = bytes_per_element(step_.asked.stack.sharding.parameter_gather_format);
  const auto gather = [&](const Replicas& over, double parameters) {
    const Bytes bytes(parameters * element);
    return bucketed(CollectiveKind::all_gather, over.shard, bytes, bucket_calls(over.all, bytes));
  };
  return gather(dense_replicas(layout, step_.layers.placement), trained_) +
         gather(expert_replicas(layout, step_.layers.placement), trained_experts_);
}

// Parameters that one rank updates.
double own_parameters(const PricedStep& step, const Ending& ending, std::int64_t stage) {
  const bool sharded = ending.zero_stage >= 1;
  const ShardWays ways = shard_ways(step.asked.layout);
  const double dense =
      step.chunks.trained(stage) / (sharded ? static_cast<double>(ways.dense) : 1.0);
  const double expert =
      step.chunks.trained_experts(stage) / (sharded ? static_cast<double>(ways.expert) : 1.0);
  return dense + expert;
}

// The host updates what it keeps: gradients come down, parameters go back, the host's memory
// streams the states; the three run bucket by bucket beside each other. What comes and goes passes
// through the host's memory as well.
Seconds offloaded_update(const PricedStep& step, double parameters) {
  const StepContext& context = step.asked.context;
  const Stack& stack = step.asked.stack;
  const Bytes down(parameters * bytes_per_element(stack.sharding.gradient_storage));
  const Bytes up(parameters * bytes_per_element(stack.sharding.parameter_gather_format));
  const Bytes states(parameters * step.layers.program->optimizer_bytes_per_parameter);
  const BytesPerSecond memory = context.host_memory_bandwidth;
  const Seconds host = states / (memory * stack.host.update_share.get()) + (down + up) / memory;
  return std::max({down / context.device.host_bandwidth, up / context.device.host_bandwidth, host});
}

// What a step does to whole gradients that ranks share, beside their sums and reductions.
Seconds touch_time(const PricedStep& step, const Ending& ending, std::int64_t stage) {
  const StepContext& context = step.asked.context;
  const Stack& stack = step.asked.stack;
  const Layout& layout = step.asked.layout;
  if (ending.zero_stage >= 2) return {};
  const double shared = (layout.dense_replicas() > 1 ? step.chunks.trained(stage) : 0) +
                        (layout.expert_replicas() > 1 ? step.chunks.trained_experts(stage) : 0);
  const double half = stack.kernels.update.gradient_touches.get() * shared *
                      bytes_per_element(stack.sharding.gradient_storage) / 2;
  if (half <= 0) return {};
  return kernel_time({.work = {.kind = WorkKind::copy, .bytes_read = half, .bytes_written = half},
                      .library = Library::fused},
                     context.device, context.calibration)
      .time;
}

Seconds optimizer_time(const PricedStep& step, const Ending& ending, std::int64_t stage) {
  const StepContext& context = step.asked.context;
  Seconds time = touch_time(step, ending, stage);
  time += kernel_time(update_kernel(step, ending, stage), context.device, context.calibration).time;
  if (const double products = update_products(step, ending, stage); products > 0)
    time += products * std::max(1.0, step.asked.stack.kernels.kernel_age.get()) *
            kernel_time(step.layers.program->optimizer_product, context.device, context.calibration)
                .time;
  // Beside it. That the accelerator has less to do is not counted: the host, with a tenth of its
  // memory bandwidth or less, is the slower one.
  if (ending.offloaded > 0)
    time = std::max(time,
                    offloaded_update(step, own_parameters(step, ending, stage) * ending.offloaded));
  return time;
}

// A step ends with the gradients' norm over the ranks of a replica, the mean loss over replicas and
// a barrier of all: next to no bytes, but each a call that a debug wrapper checks.
Seconds closing_calls(const Layout& layout, const PricedLayers& layers) {
  const DebugCalls& calls = layers.debug;
  const Placement& placement = layers.placement;
  const auto over = [&](std::int64_t ranks, std::int64_t of_domain) {
    if (ranks <= 1) return Seconds(0);
    return calls.of({.size = ranks, .per_domain = std::min(ranks, of_domain)});
  };
  const std::int64_t replica = layout.tp * layout.cp;
  const bool spread = layout.gpus() > placement.ranks_per_domain;
  return over(replica * layout.pp,
              spread ? std::min(replica, placement.ranks_per_domain) : layout.gpus()) +
         (placement.data.size > 1 ? calls.of(placement.data) : Seconds(0)) +
         over(layout.gpus(), placement.ranks_per_domain);
}

}  // namespace

Kernel update_kernel(const PricedStep& step, const Ending& ending, std::int64_t stage) {
  const StackKernels& kernels = step.asked.stack.kernels;
  const bool narrow = step.asked.layout.optimizer == Optimizer::adam_bf16;
  const double passes = (narrow ? kernels.update.passes_16_bit : kernels.update.passes).get();
  const double traffic = own_parameters(step, ending, stage) *
                         step.layers.program->optimizer_bytes_per_parameter * passes;
  return {.work = {.kind = WorkKind::optimizer,
                   .input = Format::fp32,
                   .output = Format::fp32,
                   .bytes_read = traffic / 2,
                   .bytes_written = traffic / 2},
          .library = kernels.update_library()};
}

double update_products(const PricedStep& step, const Ending& ending, std::int64_t stage) {
  return own_parameters(step, ending, stage) *
         step.layers.program->optimizer_products_per_parameter;
}

void list_data_traffic(const PricedStep& step, const Ending& ending, std::int64_t stage,
                       const std::function<void(const Collective&, double count)>& told) {
  Tail untold;
  StageTraffic traffic(step, ending, stage, untold, told);
  traffic.gradient_time();
  traffic.parameter_time();
}

Ticks most_paced_by_host(const PricedStep& step, std::int64_t stage) {
  if (!step.asked.runs_ahead()) return {};
  const ChunkTime& t = step.chunks.at(stage, 0);
  const PassTicks& last =
      splits_backward(step.asked.layout.schedule) ? t.weight_gradient : t.backward;
  return max(Ticks{}, last.host - last.total);
}

StageTails::StageTails(const PricedStep& step, const Ending& ending)
    : step_(step),
      ending_(ending),
      contention_(step_, ending_),
      closing_(closing_calls(step.asked.layout, step.layers)) {}

// Of `count` reductions before the last one: all of their traffic may hide under what the stage
// does and waits for between its first and its last backward, down to the last bucket.
Seconds StageTails::shown_earlier(Seconds gradients, double count, std::int64_t stage,
                                  const StageRun& run, bool overlapped) const {
  const Seconds traffic = count * gradients;
  if (!overlapped || count <= 0) return traffic;
  Seconds room(std::numeric_limits<double>::infinity());  // where only a bound is asked for
  if (!run.first_forward.empty()) {
    const Ticks first = *std::min_element(run.first_forward.begin(), run.first_forward.end());
    const Ticks last =
        *std::max_element(run.last_backward_start.begin(), run.last_backward_start.end());
    Ticks forward;  // of all chunks
    const auto chunks = static_cast<std::int64_t>(run.first_forward.size());
    for (std::int64_t c = 0; c < chunks; ++c) forward += step_.chunks.at(stage, c).forward.total;
    // Activations that a stage holds at the most are forwards ahead of its first backward.
    const auto ahead =
        static_cast<double>(peak_in_flight(step_shape(step_), stage)) / static_cast<double>(chunks);
    room = std::max(Seconds(0), to_seconds(last - first) - to_seconds(forward) * ahead);
  }
  const auto& communication = step_.asked.stack.communication;
  return exposed(traffic, room, communication.data_overlap_window.get(),
                 std::numeric_limits<double>::infinity(), communication.overlap_cost.get());
}

Tail StageTails::of(std::int64_t stage, const StageRun& run, Ticks paced) {
  const Layout& layout = step_.asked.layout;
  const Stack& stack = step_.asked.stack;
  Tail tail;
  StageTraffic traffic(step_, ending_, stage, tail);
  const Seconds gradients = traffic.gradient_time();
  const Seconds parameters = traffic.parameter_time();
  Seconds hides_gradients = to_seconds(paced), hides_parameters;
  for (std::size_t c = 0; c < run.last_backward.size(); ++c) {
    hides_gradients += to_seconds(run.last_backward[c] - run.last_backward_start[c]);
    hides_parameters +=
        to_seconds(step_.chunks.at(stage, static_cast<std::int64_t>(c)).forward.total);
  }
  // The last bucket is complete only when backward ends, the first is needed before forward starts.
  const double window = stack.communication.data_overlap_window.get(),
               cost = stack.communication.overlap_cost.get();
  const double bucket = bucket_size(ending_, stack, step_.layers.placement.data_context).si();
  const auto buckets = [&](Format format) {
    return std::max(1.0, traffic.trained() * bytes_per_element(format) / bucket);
  };
  // Gradients that wait for a pass may still be hidden, what a pass waits for them is not.
  const Delays shared = contention_.of(stage);
  const bool under_backward = overlaps_gradients(stack, layout) &&
                              !(ending_.zero_stage >= 1 && stack.sharding.sharded_at_once);
  const Seconds both = gradients + shared.gradients;
  const Seconds shown_gradients = under_backward
                                      ? exposed(both, hides_gradients + shared.passes, window,
                                                buckets(stack.sharding.gradient_format), cost)
                                      : both;
  const Seconds earlier =
      shown_earlier(gradients, gradient_reductions(step_, ending_) - 1, stage, run, under_backward);
  const Seconds shown_parameters =
      overlaps_parameters(stack, layout)
          ? exposed(parameters, hides_parameters, window,
                    buckets(stack.sharding.parameter_gather_format), cost)
          : parameters;
  tail.data = to_ticks(shown_gradients + earlier + shown_parameters + shared.passes);
  tail.optimizer = to_ticks(optimizer_time(step_, ending_, stage));
  tail.overhead = to_ticks(stack.host.step_overhead.get() + closing_);
  return tail;
}

}  // namespace orrery
