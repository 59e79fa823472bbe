// SPDX-License-Identifier: Apache-2.0
// Lists what a step's collectives do to the network: contention of gradients with the backward pass
// above them, and every collective of a stage with its count.
#include <algorithm>
#include <cmath>

#include "sim/engine/step/run.h"

namespace orrery {
namespace {

// Layers of each class that a chunk runs, recomputed or not.
double layers_of(const ChunkProgram& chunk, std::size_t i) {
  return static_cast<double>(chunk.layers[i] + chunk.recomputed[i]);
}

// Collects uses; the same collective under the same label counts up.
class Uses {
 public:
  Uses(const Placement& placement, FlowNetwork& network)
      : placement_(placement), network_(network) {}
  void add(Label label, const Collective& collective, double count) {
    if (!(count > 0)) return;
    for (NetworkUse& use : uses_)
      if (use.label == label && use.collective == collective) {
        use.count += count;
        return;
      }
    uses_.push_back({.label = label,
                     .collective = collective,
                     .count = count,
                     .price = network_.details(collective)});
  }
  void add(const Segment& segment, double times) {
    for (const Operation& o : segment.operations)
      if (o.kind == OperationKind::collective)
        if (const auto collective = collective_of(o, placement_))
          add(o.label, *collective, o.count * times);
  }
  std::vector<NetworkUse> take() {
    const auto seconds = [](const NetworkUse& u) { return u.count * u.price.time.time.si(); };
    std::stable_sort(uses_.begin(), uses_.end(), [&](const NetworkUse& a, const NetworkUse& b) {
      return seconds(a) > seconds(b);
    });
    return std::move(uses_);
  }

 private:
  const Placement& placement_;
  FlowNetwork& network_;
  std::vector<NetworkUse> uses_;
};

}  // namespace

// The last backward pass of a chunk and the gradient buckets under it: layer by layer, each layer's
// own gradients beside its own collectives.
StepRun::Delays StepRun::gradient_contention(const ChunkTime& chunk) {
  const SpeedClass& speed = speeds_[chunk.speed];
  const PriceContext prices = price_context(speed);
  double layers = 0;
  for (std::size_t i = 0; i < speed.classes.size(); ++i) layers += layers_of(chunk.program, i);
  if (layers == 0) return {};
  const double element = bytes_per_element(stack_.gradient_format);
  std::vector<StreamItem> side;
  const auto gradients = [&](const Replicas& over, double parameters) {
    const auto add = [&](CollectiveKind kind, const GroupShape& group, double share) {
      const Bytes bytes(parameters / layers * element * share);
      if (group.size > 1 && parameters > 0)
        side.push_back({.collective = Collective{.kind = kind, .group = group, .bytes = bytes}});
    };
    if (ending_.zero_stage == 0) {
      add(CollectiveKind::all_reduce, over.all, 1);
      return;
    }
    add(CollectiveKind::reduce_scatter, over.shard, 1);
    add(CollectiveKind::all_reduce, over.copies, 1 / over.ways);
  };
  gradients(dense_replicas(), chunk.program.trained);
  gradients(expert_replicas(), chunk.program.trained_experts);
  if (side.empty()) return {};
  Delays sum;
  for (std::size_t i = 0; i < speed.classes.size(); ++i) {
    const double count = layers_of(chunk.program, i);
    const Segment& backward = splits_backward(layout_.schedule) ? program_.classes[i].input_gradient
                                                                : program_.classes[i].backward;
    const std::vector<StreamItem> main = main_stream(backward, prices);
    if (count == 0 || main.size() < 2) continue;
    const TwoStreams run = run_streams(main, side, *flow_);
    sum.passes += count * run.main_delay();
    sum.gradients += count * run.side_delay();
  }
  return sum;
}

// Equal chunks have equal delays, and simulating them is most of what a step costs.
StepRun::Delays StepRun::gradient_contention(std::int64_t stage) {
  if (!flow_ || !overlaps_gradients(stack_, layout_) || ending_.zero_stage == 3) return {};
  delays_.resize(distinct_.size());
  Delays sum;
  for (std::int64_t c = 0; c < chunks_per_stage(); ++c) {
    const std::size_t i = chunk_index_[static_cast<std::size_t>(stage * chunks_per_stage() + c)];
    if (!delays_[i]) delays_[i] = gradient_contention(*distinct_[i]);
    sum.passes += delays_[i]->passes;
    sum.gradients += delays_[i]->gradients;
  }
  return sum;
}

std::vector<NetworkUse> StepRun::network_use(std::int64_t stage) {
  if (!flow_) return {};
  Uses uses(placement_, *flow_);
  const bool training = is_training(job_.task);
  const bool split = splits_backward(layout_.schedule);
  const double passes = !training ? 1
                                  : static_cast<double>(layout_.microbatches(job_)) /
                                        (layout_.schedule == Schedule::dual_pipe ? 2 : 1);
  const auto layer = [&](const LayerProgram& l, double plain, double recomputed) {
    uses.add(l.forward, passes * (plain + recomputed));
    if (!training) return;
    uses.add(split ? l.input_gradient : l.backward, passes * (plain + recomputed));
    if (split) uses.add(l.weight_gradient, passes * (plain + recomputed));
    uses.add(l.recompute, passes * recomputed);
  };
  for (std::int64_t c = 0; c < chunks_per_stage(); ++c) {
    const ChunkProgram& chunk = chunk_time(stage, c).program;
    for (std::size_t i = 0; i < program_.classes.size(); ++i)
      layer(program_.classes[i], chunk.layers[i], chunk.recomputed[i]);
    if (chunk.embedding) layer(program_.embedding, 1, 0);
    if (chunk.head) layer(program_.head, 1 + chunk.modules, 0);
    const double again = chunk.recomputes_modules ? chunk.modules : 0;
    layer(program_.module, chunk.modules - again, again);
    if (const auto message = send(program_.send_bytes); message && !chunk.head)
      uses.add(Label::pipeline_comm, *message, passes);
    if (!training || chunk.embedding) continue;
    if (const auto message = send(program_.gradient_send_bytes))
      uses.add(Label::pipeline_comm, *message, passes);
  }
  if (training) {
    Tail counted{.stage = stage};
    counted.uses = [&](const Collective& collective, double count) {
      uses.add(Label::data_comm, collective, count);
    };
    gradient_time(stage, counted);
    parameter_time(stage, counted);
  }
  return uses.take();
}

}  // namespace orrery
