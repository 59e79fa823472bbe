// Runs one step: prices every distinct pass once, runs the pipeline, adds what data parallelism
// leaves visible and the optimizer.
#include "sim/engine/step.h"

#include <algorithm>
#include <cmath>

#include "hw_models/kernel_time.h"
#include "sim/engine/segment_time.h"
#include "workloads/inference.h"
#include "workloads/memory.h"
#include "workloads/training.h"

namespace orrery {
namespace {

// The priced phases of a layer class.
struct LayerTime {
  PhaseTime forward, backward, input_gradient, weight_gradient, recompute;
};

// Passes of one distinct chunk.
struct ChunkTime {
  ChunkProgram program;
  PassTicks forward, backward, input_gradient, weight_gradient;
  double scale_up_bytes = 0, scale_out_bytes = 0;
};

bool splits_backward(Schedule schedule) {
  return schedule == Schedule::zero_bubble || schedule == Schedule::dual_pipe;
}

// Everything that one call of step() builds on its way.
class StepRun {
 public:
  StepRun(const StepContext& context, const Model& model, const Job& job, const Layout& layout,
          const Stack& stack)
      : context_(context),
        model_(model),
        job_(job),
        layout_(layout),
        stack_(stack),
        placement_(place(layout, context.fabric)),
        network_(context.fabric, context.collective_costs),
        program_(is_training(job.task) ? lower_training(model, job, layout, stack)
                                       : lower_inference(model, job, layout, stack)) {
    price_layers();
    price_chunks();
  }

  StepPipeline pipeline();
  StepResult training();
  StepResult inference();

 private:
  // What data parallelism and the optimizer add after a stage's last pass.
  struct Tail {
    Ticks data, optimizer, overhead;
    double scale_up_bytes = 0, scale_out_bytes = 0;
    Ticks total() const { return data + optimizer + overhead; }
  };

  void price_layers();
  void price_chunks();
  LayerTime price_layer(const LayerProgram& layer, const PriceContext& prices) const;
  ChunkTime time_chunk(const ChunkProgram& chunk) const;
  // Position whose layers chunk `c` of stage `s` holds: DualPipe's second chunk is the mirror's.
  const ChunkTime& chunk_time(std::int64_t stage, std::int64_t chunk) const;
  Ticks send_time();  // one activation message between neighbouring stages
  Seconds bucketed(CollectiveKind kind, const GroupShape& group, Bytes total, Tail& tail);
  Bytes bucket(const GroupShape& group) const {
    return std::max(stack_.bucket.get(),
                    stack_.bucket_per_rank.get() * static_cast<double>(group.size));
  }
  Tail tail(const StageRun& run, std::int64_t stage);
  Seconds gradient_time(std::int64_t stage, Tail& tail);
  Seconds parameter_time(std::int64_t stage, Tail& tail);
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
  const Stack& stack_;
  Placement placement_;
  IdealNetwork network_;
  TrainingProgram program_;
  std::vector<LayerTime> classes_;
  LayerTime embedding_, head_;
  std::vector<ChunkTime> distinct_;       // distinct chunks
  std::vector<std::size_t> chunk_index_;  // [stage * vpp + chunk] into distinct_
};

LayerTime StepRun::price_layer(const LayerProgram& layer, const PriceContext& prices) const {
  LayerTime t{.forward = price_segment(layer.forward, prices),
              .backward = price_segment(layer.backward, prices)};
  if (splits_backward(layout_.schedule)) {
    t.input_gradient = price_segment(layer.input_gradient, prices);
    t.weight_gradient = price_segment(layer.weight_gradient, prices);
  }
  if (layout_.recompute == Recompute::full) t.recompute = price_segment(layer.recompute, prices);
  return t;
}

void StepRun::price_layers() {
  const double gap = stack_.launch == LaunchMode::eager
                         ? std::max(0.0, context_.calibration.launch_latency.get().si() -
                                             context_.calibration.graph_latency.get().si())
                         : 0.0;
  const PriceContext prices{
      .step = context_, .placement = placement_, .network = network_, .kernel_gap = gap};
  for (const LayerProgram& layer : program_.classes) classes_.push_back(price_layer(layer, prices));
  embedding_ = price_layer(program_.embedding, prices);
  head_ = price_layer(program_.head, prices);
}

ChunkTime StepRun::time_chunk(const ChunkProgram& chunk) const {
  ChunkTime out{.program = chunk};
  PhaseTime forward, backward, input, weight;
  const auto add = [&](const LayerTime& t, double plain, double recomputed) {
    const double all = plain + recomputed;
    if (all == 0) return;
    forward.add(t.forward, all);
    backward.add(t.backward, all);
    input.add(t.input_gradient, all);
    weight.add(t.weight_gradient, all);
    if (recomputed == 0) return;
    backward.add(t.recompute, recomputed);
    input.add(t.recompute, recomputed);
  };
  for (std::size_t i = 0; i < classes_.size(); ++i)
    add(classes_[i], chunk.layers[i], chunk.recomputed[i]);
  if (chunk.embedding) add(embedding_, 1, 0);
  if (chunk.head) {
    add(head_, 1, 0);
    // Every MTP module runs one more layer and the head again.
    if (program_.mtp_layers > 0) {
      add(classes_[model_.layers.back()], program_.mtp_layers, 0);
      add(head_, program_.mtp_layers, 0);
    }
  }
  if (is_training(job_.task))
    forward.side_host = backward.side_host = input.side_host = host_link_seconds(chunk);
  out.forward = close_pass(forward, context_.device, stack_.overlap_cost.get());
  if (is_training(job_.task)) {
    if (splits_backward(layout_.schedule)) {
      out.input_gradient = close_pass(input, context_.device, stack_.overlap_cost.get());
      out.weight_gradient = close_pass(weight, context_.device, stack_.overlap_cost.get());
    } else {
      out.backward = close_pass(backward, context_.device, stack_.overlap_cost.get());
    }
  }
  out.scale_up_bytes = forward.scale_up_bytes + backward.scale_up_bytes;
  out.scale_out_bytes = forward.scale_out_bytes + backward.scale_out_bytes;
  return out;
}

void StepRun::price_chunks() {
  const auto same = [](const ChunkProgram& a, const ChunkProgram& b) {
    return a.embedding == b.embedding && a.head == b.head && a.layers == b.layers &&
           a.recomputed == b.recomputed;
  };
  for (const ChunkProgram& chunk : program_.chunks) {
    std::size_t i = 0;
    while (i < distinct_.size() && !same(distinct_[i].program, chunk)) ++i;
    if (i == distinct_.size()) distinct_.push_back(time_chunk(chunk));
    chunk_index_.push_back(i);
  }
}

const ChunkTime& StepRun::chunk_time(std::int64_t stage, std::int64_t chunk) const {
  const bool dual = chunks_per_stage() != layout_.vpp;
  const std::int64_t i =
      dual ? (chunk == 0 ? stage : layout_.pp - 1 - stage) : stage * layout_.vpp + chunk;
  return distinct_[chunk_index_[static_cast<std::size_t>(i)]];
}

Ticks StepRun::send_time() {
  if (layout_.pp == 1) return {};
  const bool inside = placement_.pipeline.tier == 0;
  const std::int64_t per_stage = layout_.tp * layout_.cp * layout_.dp;
  const GroupShape pair{.size = 2,
                        .per_domain = inside ? 2 : 1,
                        .domains = inside ? 1 : 2,
                        .span = per_stage + 1,
                        .sharing = inside ? 1 : placement_.ranks_per_domain};
  const CollectiveTime& t = network_.price(
      {.kind = CollectiveKind::send_receive, .group = pair, .bytes = Bytes(program_.send_bytes)});
  return to_ticks(t.time + stack_.debug_per_rank.get() * 2.0);
}

StepPipeline StepRun::pipeline() {
  StepPipeline p;
  const bool training = is_training(job_.task);
  p.shape = {.schedule = training ? layout_.schedule : Schedule::one_f_one_b,
             .stages = layout_.pp,
             .chunks = chunks_per_stage(),
             .microbatches = training ? layout_.microbatches(job_) : 1};
  p.costs.sends_block =
      stack_.pipeline_sends_block && layout_.vpp == 1 && !splits_backward(layout_.schedule);
  const Ticks send = send_time();
  for (std::int64_t stage = 0; stage < layout_.pp; ++stage)
    for (std::int64_t chunk = 0; chunk < p.shape.chunks; ++chunk) {
      const ChunkTime& t = chunk_time(stage, chunk);
      const Ticks gradients = splits_backward(layout_.schedule)
                                  ? t.input_gradient.total + t.weight_gradient.total
                                  : t.backward.total;
      p.costs.chunk.push_back({.forward = t.forward.total,
                               .backward = gradients,
                               .input_gradient = t.input_gradient.total,
                               .weight_gradient = t.weight_gradient.total,
                               .send_forward = t.program.head ? Ticks{} : send,
                               .send_backward = t.program.embedding ? Ticks{} : send});
    }
  return p;
}

// Gradients and parameters move in buckets: the traffic of one after the other.
Seconds StepRun::bucketed(CollectiveKind kind, const GroupShape& group, Bytes total, Tail& tail) {
  if (group.size <= 1 || total <= Bytes(0)) return {};
  const double count = std::max(1.0, std::ceil(total / bucket(group)));
  const CollectiveTime& t = network_.price({.kind = kind, .group = group, .bytes = total / count});
  tail.scale_up_bytes += count * t.scale_up_bytes.si();
  tail.scale_out_bytes += count * t.scale_out_bytes.si();
  return count * (t.time + stack_.debug_per_rank.get() * static_cast<double>(group.size));
}

double StepRun::stage_parameters(std::int64_t stage) const {
  double sum = 0;
  for (std::int64_t c = 0; c < chunks_per_stage(); ++c)
    sum += chunk_time(stage, c).program.parameters;
  return sum;
}

double StepRun::stage_expert_parameters(std::int64_t stage) const {
  double sum = 0;
  for (std::int64_t c = 0; c < chunks_per_stage(); ++c)
    sum += chunk_time(stage, c).program.expert_parameters;
  return sum;
}

Seconds StepRun::gradient_time(std::int64_t stage, Tail& tail) {
  if (layout_.zero_stage == 3) return {};
  const double element = bytes_per_element(stack_.gradient_format) * program_.trainable_share;
  const CollectiveKind kind =
      layout_.zero_stage >= 1 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  Seconds time =
      bucketed(kind, placement_.data_context, Bytes(stage_parameters(stage) * element), tail);
  time +=
      bucketed(kind, placement_.expert_data, Bytes(stage_expert_parameters(stage) * element), tail);
  const bool ends = stage == 0 || stage == layout_.pp - 1;
  if (model_.tied_embeddings && layout_.pp > 1 && ends) {
    const double vocabulary = static_cast<double>(model_.vocab * model_.hidden / layout_.tp);
    time += network_
                .price({.kind = CollectiveKind::all_reduce,
                        .group = placement_.embedding,
                        .bytes = Bytes(vocabulary * element)})
                .time;
  }
  return time;
}

Seconds StepRun::parameter_time(std::int64_t stage, Tail& tail) {
  if (layout_.zero_stage == 0 || layout_.zero_stage == 3) return {};
  const double element =
      bytes_per_element(stack_.parameter_gather_format) * program_.trainable_share;
  return bucketed(CollectiveKind::all_gather, placement_.data_context,
                  Bytes(stage_parameters(stage) * element), tail) +
         bucketed(CollectiveKind::all_gather, placement_.expert_data,
                  Bytes(stage_expert_parameters(stage) * element), tail);
}

Seconds StepRun::optimizer_time(std::int64_t stage) const {
  const bool sharded = layout_.zero_stage >= 1;
  const double shard = layout_.shard_group > 0 ? static_cast<double>(layout_.shard_group)
                                               : static_cast<double>(layout_.dense_replicas());
  const double dense = stage_parameters(stage) / (sharded ? shard : 1.0);
  const double expert = stage_expert_parameters(stage) /
                        (sharded ? static_cast<double>(layout_.expert_replicas()) : 1.0);
  const double own = (dense + expert) * program_.trainable_share;
  const double traffic = own * program_.optimizer_bytes_per_parameter;
  const Kernel update{.work = {.kind = WorkKind::optimizer,
                               .input = Format::fp32,
                               .output = Format::fp32,
                               .bytes_read = traffic / 2,
                               .bytes_written = traffic / 2},
                      .library = stack_.memory_bound};
  Seconds time = kernel_time(update, context_.device, context_.calibration).time;
  const double tensor = own * program_.optimizer_flop_per_parameter;
  const FlopPerSecond rate = context_.device.tensor_rate[static_cast<std::size_t>(Format::bf16)];
  if (tensor > 0) time += Flop(tensor) / rate;
  if (layout_.offload_optimizer) time = std::max(time, offloaded_update(own));
  return time;
}

// The host updates what it keeps: gradients come down, parameters go back, the host's memory
// streams the states; the three run bucket by bucket beside each other.
Seconds StepRun::offloaded_update(double parameters) const {
  const Bytes down(parameters * bytes_per_element(stack_.gradient_storage));
  const Bytes up(parameters * bytes_per_element(stack_.parameter_gather_format));
  const Bytes states(parameters * program_.optimizer_bytes_per_parameter);
  return std::max({down / context_.device.host_bandwidth, up / context_.device.host_bandwidth,
                   states / context_.host_memory_bandwidth});
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

StepRun::Tail StepRun::tail(const StageRun& run, std::int64_t stage) {
  Tail out;
  const Seconds gradients = gradient_time(stage, out);
  const Seconds parameters = parameter_time(stage, out);
  Seconds hides_gradients, hides_parameters;
  for (std::size_t c = 0; c < run.last_backward.size(); ++c) {
    hides_gradients += to_seconds(run.last_backward[c] - run.last_backward_start[c]);
    hides_parameters += to_seconds(chunk_time(stage, static_cast<std::int64_t>(c)).forward.total);
  }
  // The last bucket is complete only when backward ends, the first is needed before forward starts.
  const auto visible = [&](Seconds traffic, Seconds hidden, bool overlaps, double element) {
    if (!overlaps || traffic <= Seconds(0)) return traffic;
    const double total = (stage_parameters(stage) + stage_expert_parameters(stage)) * element;
    const double buckets = std::max(1.0, total / bucket(placement_.data_context).si());
    const Seconds seen =
        std::max(traffic - hidden * stack_.data_overlap_window.get(), traffic / buckets);
    return seen + (traffic - seen) * stack_.overlap_cost.get();
  };
  const Seconds data = visible(gradients, hides_gradients, stack_.gradient_overlap,
                               bytes_per_element(stack_.gradient_format)) +
                       visible(parameters, hides_parameters, stack_.parameter_overlap,
                               bytes_per_element(stack_.parameter_gather_format));
  out.data = to_ticks(data);
  out.optimizer = to_ticks(optimizer_time(stage));
  out.overhead = to_ticks(stack_.step_overhead.get());
  return out;
}

StepResult StepRun::training() {
  const StepPipeline p = pipeline();
  const PipelineRun run = run_pipeline(p.shape, p.costs);
  StepResult result;
  std::vector<Tail> tails;
  for (std::int64_t s = 0; s < layout_.pp; ++s) {
    const StageRun& stage = run.stages[static_cast<std::size_t>(s)];
    tails.push_back(tail(stage, s));
    result.step = max(result.step, stage.end + tails.back().total());
  }
  const bool split = splits_backward(layout_.schedule);
  const std::int64_t per_chunk =
      layout_.schedule == Schedule::dual_pipe ? p.shape.microbatches / 2 : p.shape.microbatches;
  double energy = 0, burst = 0, sustained = 0;
  for (std::int64_t s = 0; s < layout_.pp; ++s) {
    StageBreakdown stage;
    double up = 0, out = 0;
    for (std::int64_t c = 0; c < p.shape.chunks; ++c) {
      const ChunkTime& t = chunk_time(s, c);
      const auto count = [&](const PassTicks& pass) {
        for (std::size_t l = 0; l < stage.label.size(); ++l)
          stage.label[l] += pass.label[l] * per_chunk;
        energy += pass.energy * static_cast<double>(per_chunk);
        const double seconds = to_seconds(pass.total).si() * static_cast<double>(per_chunk);
        sustained += seconds;
        burst += seconds / pass.throttle;
      };
      count(t.forward);
      if (split) {
        count(t.input_gradient);
        count(t.weight_gradient);
      } else {
        count(t.backward);
      }
      up += t.scale_up_bytes * static_cast<double>(per_chunk);
      out += t.scale_out_bytes * static_cast<double>(per_chunk);
      // Each pass hands its result on, but for the ends of the pipeline.
      if (layout_.pp > 1)
        (placement_.pipeline.tier == 0 ? up : out) +=
            2 * program_.send_bytes * static_cast<double>(per_chunk);
    }
    const auto i = static_cast<std::size_t>(s);
    stage[Label::pipeline_comm] += run.stages[i].blocked;
    stage[Label::data_comm] += tails[i].data;
    stage[Label::optimizer] += tails[i].optimizer;
    stage[Label::host] += tails[i].overhead;
    stage[Label::bubble] += result.step - stage.total();
    result.scale_up_bytes = std::max(result.scale_up_bytes, Bytes(up + tails[i].scale_up_bytes));
    result.scale_out_bytes =
        std::max(result.scale_out_bytes, Bytes(out + tails[i].scale_out_bytes));
    result.stages.push_back(stage);
  }
  result.throttle = burst > 0 ? sustained / burst : 1;
  result.energy_per_gpu = Joules(energy / static_cast<double>(layout_.pp)) +
                          context_.device.idle_power * to_seconds(result.step);
  return result;
}

// One request batch passes the stages one after the other: latency is their sum.
StepResult StepRun::inference() {
  const StepPipeline p = pipeline();
  StepResult result;
  double energy = 0;
  for (const ChunkCost& chunk : p.costs.chunk) result.step += chunk.forward + chunk.send_forward;
  for (std::int64_t s = 0; s < layout_.pp; ++s) {
    const ChunkTime& t = chunk_time(s, 0);
    StageBreakdown stage;
    stage.label = t.forward.label;
    stage[Label::pipeline_comm] += p.costs.chunk[static_cast<std::size_t>(s)].send_forward;
    stage[Label::bubble] += result.step - stage.total();
    result.stages.push_back(stage);
    energy += t.forward.energy;
    result.throttle = std::max(result.throttle, t.forward.throttle);
    result.scale_up_bytes = std::max(result.scale_up_bytes, Bytes(t.scale_up_bytes));
    result.scale_out_bytes = std::max(result.scale_out_bytes, Bytes(t.scale_out_bytes));
  }
  result.energy_per_gpu = Joules(energy / static_cast<double>(layout_.pp)) +
                          context_.device.idle_power * to_seconds(result.step);
  return result;
}

}  // namespace

Ticks StageBreakdown::total() const {
  Ticks sum;
  for (Ticks t : label) sum += t;
  return sum;
}

StepContext step_context(const Cluster& cluster) {
  StepContext context{.fabric = cluster.fabric,
                      .collective_costs = cluster.collective_costs,
                      .device = cluster.device.resolved(),
                      .calibration = cluster.calibration,
                      .clock_factor = cluster.site.clock_factor.get()};
  context.host_memory_bandwidth =
      cluster.host.memory_bandwidth.value.value_or(BytesPerSecond()) /
      static_cast<double>(std::max<std::int64_t>(1, cluster.gpus_per_host));
  for (FlopPerSecond& rate : context.device.tensor_rate) rate *= context.clock_factor;
  context.device.vector_rate *= context.clock_factor;
  context.device.special_function_per_second *= context.clock_factor;
  context.device.l2_bandwidth *= context.clock_factor;
  return context;
}

StepResult step(const StepContext& context, const Model& model, const Job& job,
                const Layout& layout, const Stack& stack) {
  StepRun run(context, model, job, layout, stack);
  return is_training(job.task) ? run.training() : run.inference();
}

StepPipeline step_pipeline(const StepContext& context, const Model& model, const Job& job,
                           const Layout& layout, const Stack& stack) {
  return StepRun(context, model, job, layout, stack).pipeline();
}

}  // namespace orrery
