// SPDX-License-Identifier: Apache-2.0
// Times what data parallelism and the optimizer add after a stage's last pass.
#include <algorithm>
#include <cmath>

#include "hw_models/kernel/kernel_time.h"
#include "sim/engine/step/overlap.h"
#include "sim/engine/step/run.h"
#include "workloads/memory/memory.h"
#include "workloads/parameters/state_memory.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {

StepRun::Replicas StepRun::dense_replicas() const {
  return {.all = placement_.data_context,
          .shard = placement_.shard,
          .copies = placement_.shard_replica,
          .ways = static_cast<double>(shard_ways(layout_).dense)};
}

StepRun::Replicas StepRun::expert_replicas() const {
  return {.all = placement_.expert_data,
          .shard = placement_.expert_shard,
          .copies = placement_.expert_shard_replica,
          .ways = static_cast<double>(shard_ways(layout_).expert)};
}

// Gradients and parameters move in buckets, whose size goes with all ranks that hold them.
double StepRun::bucket_calls(const GroupShape& replicas, Bytes total) const {
  const bool at_once = ending_.zero_stage >= 1 && stack_.sharded_at_once;
  return at_once ? 1.0 : std::max(1.0, std::ceil(total / bucket(replicas)));
}

Seconds StepRun::bucketed(CollectiveKind kind, const GroupShape& group, Bytes total, double calls,
                          Tail& tail) {
  if (group.size <= 1 || total <= Bytes(0)) return {};
  const Collective bucket_of{.kind = kind, .group = group, .bytes = total / calls};
  const CollectiveTime& t = network_->price(bucket_of, tail.stage);
  if (tail.uses) tail.uses(bucket_of, calls);
  tail.scale_up_bytes += calls * t.scale_up_bytes.si();
  tail.scale_out_bytes += calls * t.scale_out_bytes.si();
  const Seconds debug(calls * debug_calls().of(group));
  if (ending_.zero_stage >= 1 || !runs_ahead()) return calls * t.time + debug;
  tail.host += to_ticks(debug);
  return calls * t.time;
}

double StepRun::stage_parameters(std::int64_t stage) const {
  double sum = 0;
  for (std::int64_t c = 0; c < chunks_per_stage(); ++c) sum += chunk_time(stage, c).program.trained;
  return sum;
}

double StepRun::stage_expert_parameters(std::int64_t stage) const {
  double sum = 0;
  for (std::int64_t c = 0; c < chunks_per_stage(); ++c)
    sum += chunk_time(stage, c).program.trained_experts;
  return sum;
}

// Shards are reduced inside the ranks that share a copy, then each over the copies (FSDP's hybrid
// sharding; Megatron-Core's distributed optimizer instances, distributed/param_and_grad_buffer.py).
Seconds StepRun::gradient_time(std::int64_t stage, Tail& tail) {
  if (ending_.zero_stage == 3) return {};
  const double element = bytes_per_element(stack_.gradient_format);
  const auto reduce = [&](const Replicas& over, double parameters) {
    const Bytes bytes(parameters * element);
    const double calls = bucket_calls(over.all, bytes);
    if (ending_.zero_stage == 0)
      return bucketed(CollectiveKind::all_reduce, over.all, bytes, calls, tail);
    return bucketed(CollectiveKind::reduce_scatter, over.shard, bytes, calls, tail) +
           bucketed(CollectiveKind::all_reduce, over.copies, bytes / over.ways, calls, tail);
  };
  Seconds time = reduce(dense_replicas(), stage_parameters(stage));
  time += reduce(expert_replicas(), stage_expert_parameters(stage));
  // Both ends of the model hold the word table, as embedding and head or for MTP modules, unless
  // they lie on one stage.
  const bool two_tables = model_.tied_embeddings || trained_modules(model_, job_) > 0;
  const bool apart = layout_.pp > 1 && !holds_two_chunks(layout_.schedule);
  if (two_tables && apart && (stage == 0 || stage == layout_.pp - 1)) {
    const double vocabulary = vocabulary_parameters(model_, stack_, layout_);
    time += bucketed(CollectiveKind::all_reduce, placement_.embedding, Bytes(vocabulary * element),
                     1, tail);
  }
  return time;
}

Seconds StepRun::parameter_time(std::int64_t stage, Tail& tail) {
  if (ending_.zero_stage == 0 || ending_.zero_stage == 3) return {};
  const double element = bytes_per_element(stack_.parameter_gather_format);
  const auto gather = [&](const Replicas& over, double parameters) {
    const Bytes bytes(parameters * element);
    return bucketed(CollectiveKind::all_gather, over.shard, bytes, bucket_calls(over.all, bytes),
                    tail);
  };
  return gather(dense_replicas(), stage_parameters(stage)) +
         gather(expert_replicas(), stage_expert_parameters(stage));
}

double StepRun::own_parameters(std::int64_t stage) const {
  const bool sharded = ending_.zero_stage >= 1;
  const double dense = stage_parameters(stage) / (sharded ? dense_replicas().ways : 1.0);
  const double expert = stage_expert_parameters(stage) / (sharded ? expert_replicas().ways : 1.0);
  return dense + expert;
}

Kernel StepRun::update_kernel(std::int64_t stage) const {
  const double traffic = own_parameters(stage) * program_.optimizer_bytes_per_parameter *
                         stack_.optimizer_passes.get();
  return {.work = {.kind = WorkKind::optimizer,
                   .input = Format::fp32,
                   .output = Format::fp32,
                   .bytes_read = traffic / 2,
                   .bytes_written = traffic / 2},
          .library = stack_.stream_library()};
}

double StepRun::update_products(std::int64_t stage) const {
  return own_parameters(stage) * program_.optimizer_products_per_parameter;
}

Seconds StepRun::optimizer_time(std::int64_t stage) const {
  const double own = own_parameters(stage);
  Seconds time = kernel_time(update_kernel(stage), context_.device, context_.calibration).time;
  if (const double products = update_products(stage); products > 0)
    time += products * std::max(1.0, stack_.kernel_age.get()) *
            kernel_time(program_.optimizer_product, context_.device, context_.calibration).time;
  // Beside it. That the accelerator has less to do is not counted: the host, with a tenth of its
  // memory bandwidth or less, is the slower one.
  if (ending_.offloaded > 0) time = std::max(time, offloaded_update(own * ending_.offloaded));
  return time;
}

// The host updates what it keeps: gradients come down, parameters go back, the host's memory
// streams the states; the three run bucket by bucket beside each other. What comes and goes passes
// through the host's memory as well.
Seconds StepRun::offloaded_update(double parameters) const {
  const Bytes down(parameters * bytes_per_element(stack_.gradient_storage));
  const Bytes up(parameters * bytes_per_element(stack_.parameter_gather_format));
  const Bytes states(parameters * program_.optimizer_bytes_per_parameter);
  const BytesPerSecond memory = context_.host_memory_bandwidth;
  const Seconds host = states / (memory * stack_.host_update_share.get()) + (down + up) / memory;
  return std::max(
      {down / context_.device.host_bandwidth, up / context_.device.host_bandwidth, host});
}

// Seconds that one pass of a chunk keeps the link to the host busy: weights stream in for every
// pass, activations go out forward and come back backward.
double StepRun::host_link_seconds(const ChunkProgram& chunk) const {
  double bytes = 0;
  if (layout_.offload_weights)
    bytes += (chunk.parameters + chunk.expert_parameters) *
             bytes_per_element(stack_.parameter_gather_format);
  if (layout_.offload_activations) {
    Layout only = layout_;
    only.offload_weights = only.offload_optimizer = false;
    const StageMemory first = training_memory(model_, job_, only, stack_).front();
    bytes += first.offloaded.si() / static_cast<double>(std::max<std::int64_t>(1, first.in_flight));
  }
  return bytes > 0 ? bytes / context_.device.host_bandwidth.si() : 0;
}

// A step ends with the gradients' norm over the ranks of a replica, the mean loss over replicas and
// a barrier of all: next to no bytes, but each a call that a debug wrapper checks.
Seconds StepRun::closing_calls() const {
  const DebugCalls calls = debug_calls();
  const auto over = [&](std::int64_t ranks, std::int64_t of_domain) {
    if (ranks <= 1) return 0.0;
    return calls.of({.size = ranks, .per_domain = std::min(ranks, of_domain)});
  };
  const std::int64_t replica = layout_.tp * layout_.cp;
  const bool spread = layout_.gpus() > placement_.ranks_per_domain;
  return Seconds(over(replica * layout_.pp,
                      spread ? std::min(replica, placement_.ranks_per_domain) : layout_.gpus()) +
                 (placement_.data.size > 1 ? calls.of(placement_.data) : 0.0) +
                 over(layout_.gpus(), placement_.ranks_per_domain));
}

StepRun::Tail StepRun::tail(const StageRun& run, std::int64_t stage) {
  Tail out{.stage = stage};
  const Seconds gradients = gradient_time(stage, out);
  const Seconds parameters = parameter_time(stage, out);
  Seconds hides_gradients, hides_parameters;
  for (std::size_t c = 0; c < run.last_backward.size(); ++c) {
    hides_gradients += to_seconds(run.last_backward[c] - run.last_backward_start[c]);
    hides_parameters += to_seconds(chunk_time(stage, static_cast<std::int64_t>(c)).forward.total);
  }
  // The last bucket is complete only when backward ends, the first is needed before forward starts.
  const double window = stack_.data_overlap_window.get(), cost = stack_.overlap_cost.get();
  const double bucket_bytes = bucket(placement_.data_context).si();
  const double trained = stage_parameters(stage) + stage_expert_parameters(stage);
  const auto buckets = [&](Format format) {
    return std::max(1.0, trained * bytes_per_element(format) / bucket_bytes);
  };
  // Gradients that wait for a pass may still be hidden, what a pass waits for them is not.
  const Delays shared = gradient_contention(stage);
  const bool under_backward =
      overlaps_gradients(stack_, layout_) && !(ending_.zero_stage >= 1 && stack_.sharded_at_once);
  const Seconds both = gradients + shared.gradients;
  const Seconds shown_gradients = under_backward
                                      ? exposed(both, hides_gradients + shared.passes, window,
                                                buckets(stack_.gradient_format), cost)
                                      : both;
  const Seconds shown_parameters = overlaps_parameters(stack_, layout_)
                                       ? exposed(parameters, hides_parameters, window,
                                                 buckets(stack_.parameter_gather_format), cost)
                                       : parameters;
  out.data = to_ticks(shown_gradients + shown_parameters + shared.passes);
  out.optimizer = to_ticks(optimizer_time(stage));
  out.overhead = to_ticks(stack_.step_overhead.get() + closing_calls());
  return out;
}

}  // namespace orrery
