// SPDX-License-Identifier: Apache-2.0
// Simulates the last backward pass of a chunk beside its gradient buckets.
#include "sim/engine/step/contention.h"

namespace orrery {
namespace {

// Layers of each class that a chunk runs, recomputed or not.
double layers_of(const ChunkProgram& chunk, std::size_t i) {
  return static_cast<double>(chunk.layers[i] + chunk.recomputed[i]);
}

// The buckets of one layer's gradients, where a chunk has so many layers.
std::vector<StreamItem> buckets_of_a_layer(const PricedStep& step, const Ending& ending,
                                           const ChunkProgram& chunk, double layers) {
  const Layout& layout = step.asked.layout;
  const double element = bytes_per_element(step.asked.stack.sharding.gradient_format);
  std::vector<StreamItem> side;
  const auto gradients = [&](const Replicas& over, double parameters) {
    const auto add = [&](CollectiveKind kind, const GroupShape& group, double share) {
      const Bytes bytes(parameters / layers * element * share);
      if (group.size > 1 && parameters > 0)
        side.push_back({.collective = Collective{.kind = kind, .group = group, .bytes = bytes}});
    };
    if (ending.zero_stage == 0) {
      add(CollectiveKind::all_reduce, over.all, 1);
      return;
    }
    add(CollectiveKind::reduce_scatter, over.shard, 1);
    add(CollectiveKind::all_reduce, over.copies, 1 / over.ways);
  };
  gradients(dense_replicas(layout, step.layers.placement), chunk.trained);
  gradients(expert_replicas(layout, step.layers.placement), chunk.trained_experts);
  return side;
}

// The last backward pass of a chunk and the gradient buckets under it: layer by layer, each layer's
// own gradients beside its own collectives.
Delays gradient_contention(const PricedStep& step, const Ending& ending, const ChunkTime& chunk) {
  const SpeedClass& speed = step.layers.speeds[chunk.speed];
  const PriceContext prices = price_context(step.asked, step.layers, speed);
  double layers = 0;
  for (std::size_t i = 0; i < speed.classes.size(); ++i) layers += layers_of(chunk.program, i);
  if (layers == 0) return {};
  const std::vector<StreamItem> side = buckets_of_a_layer(step, ending, chunk.program, layers);
  if (side.empty()) return {};
  Delays sum;
  for (std::size_t i = 0; i < speed.classes.size(); ++i) {
    const double count = layers_of(chunk.program, i);
    const LayerProgram& layer = step.layers.program->classes[i];
    const Segment& backward =
        splits_backward(step.asked.layout.schedule) ? layer.input_gradient : layer.backward;
    const std::vector<StreamItem> main = main_stream(backward, prices);
    if (count == 0 || main.size() < 2) continue;
    const TwoStreams run = run_streams(main, side, *step.layers.flow);
    sum.passes += count * run.main_delay();
    sum.gradients += count * run.side_delay();
  }
  return sum;
}

}  // namespace

// Equal chunks have equal delays, and simulating them is most of what a step costs.
Delays GradientContention::of(std::int64_t stage) {
  const StepCase& asked = step_.asked;
  if (!step_.layers.flow || !overlaps_gradients(asked.stack, asked.layout) ||
      ending_.zero_stage == 3)
    return {};
  of_chunk_.resize(step_.chunks.distinct());
  Delays sum;
  for (std::int64_t c = 0; c < step_.chunks.per_stage(); ++c) {
    std::optional<Delays>& known = of_chunk_[step_.chunks.index(stage, c)];
    if (!known) known = gradient_contention(step_, ending_, step_.chunks.at(stage, c));
    sum.passes += known->passes;
    sum.gradients += known->gradients;
  }
  return sum;
}

}  // namespace orrery
