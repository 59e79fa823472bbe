// SPDX-License-Identifier: Apache-2.0
// Sums over a model's layers what the operations of a serving step take.
#include "sim/engine/prices/segments.h"

#include <algorithm>

namespace orrery {

double seconds_of(const PhaseTime& phase) { return total_time(phase).si(); }

Segments::Segments(const Cluster& cluster, const Model& model, const EngineLayout& layout,
                   const Stack& stack)
    : model_(model),
      layout_(layout),
      operations_(model, layout_, stack),
      context_(step_context(cluster)),
      placement_(place(layout_.layout(), context_.fabric)),
      network_(context_.fabric, context_.collective_costs, nullptr),
      layers_of_(model.classes.size(), 0) {
  for (const std::uint8_t layer : model.layers) layers_of_[layer] += 1;
}

PhaseTime Segments::price(const Segment& segment, bool in_graph) const {
  const PriceContext prices{.step = context_,
                            .device = context_.device,
                            .placement = placement_,
                            .network = network_,
                            .kernel_gap = context_.calibration.kernel_gap(in_graph),
                            .in_graph = in_graph};
  return price_segment(segment, prices);
}

// Long prompts run for many steps: what the board's power limit stretches, it stretches here.
PhaseTime Segments::sustained(PhaseTime phase) const {
  const Seconds burst = compute_time(phase);
  if (burst <= Seconds(0)) return phase;
  const SustainedPass held = sustained_pass(burst, phase.energy, phase.clocked, context_.device);
  for (const Label label : compute_labels)
    phase.time[static_cast<std::size_t>(label)] *= held.time / burst;
  return phase;
}

template <class Lower>
PhaseTime Segments::burst_layers(bool in_graph, const Lower& lower) const {
  PhaseTime sum;
  for (std::size_t i = 0; i < layers_of_.size(); ++i)
    sum.add(price(lower(model_.classes[i]), in_graph), layers_of_[i]);
  return sum;
}

PhaseTime Segments::rows(std::int64_t rows, bool in_graph) const {
  PhaseTime sum = layers(in_graph, [&](const LayerClass& c) { return operations_.layer(c, rows); });
  sum.add(price(operations_.embedding(rows), in_graph), 1);
  return sum;
}

PhaseTime Segments::rows(std::int64_t rows, const GroupRows& group) const {
  PhaseTime sum =
      layers(false, [&](const LayerClass& c) { return operations_.layer(c, rows, group); });
  sum.add(price(operations_.embedding(rows), false), 1);
  return sum;
}

// The limit stretches compute alike, whatever it is: by that of a pass over `rows` on each rank.
double Segments::shared_seconds(const GroupRows& group, std::int64_t rows) const {
  const PhaseTime shared =
      burst_layers(false, [&](const LayerClass& c) { return operations_.shared(c, group); });
  const PhaseTime pass =
      burst_layers(false, [&](const LayerClass& c) { return operations_.layer(c, rows); });
  const double stretch = compute_time(sustained(pass)) / compute_time(pass);
  return seconds_of(shared) + (stretch - 1) * compute_time(shared).si();
}

double Segments::exchange_seconds(std::int64_t largest) const {
  return shared_seconds({.largest = largest}, largest);
}

double Segments::expert_seconds(std::int64_t all) const {
  return shared_seconds({.all = all}, std::max<std::int64_t>(1, all / layout_.attention_dp));
}

PhaseTime Segments::head(std::int64_t sampled, bool in_graph) const {
  return price(operations_.head(sampled), in_graph);
}

PhaseTime Segments::joined(const std::vector<JoinedInput>& inputs, std::int64_t rows, bool first,
                           bool in_graph) const {
  return price(operations_.joined(inputs, rows, first), in_graph);
}

PhaseTime Segments::decode(std::int64_t sequences, std::int64_t each, std::int64_t history) const {
  return layers(true, [&](const LayerClass& c) {
    return operations_.decode(c.mixer, sequences, each, history);
  });
}

PhaseTime Segments::prefill(const PrefillChunk& chunk) const {
  return layers(true, [&](const LayerClass& c) {
    return operations_.prefill(c.mixer, chunk.start, chunk.tokens);
  });
}

Launches Segments::launches(bool indexed) const {
  // Of an indexer whose choice is all: its key's product, and what writes the key.
  constexpr double key_alone = 2;
  Launches all;
  const auto add = [&all](const Segment& segment, double times) {
    for (const Operation& operation : segment.operations) {
      all.operations += times;
      if (operation.collective() != nullptr) all.collectives += times;
    }
    all.operations += times * static_cast<double>(segment.second.operations.size());
  };
  for (std::size_t i = 0; i < layers_of_.size(); ++i) {
    LayerClass layer = model_.classes[i];
    if (!indexed && layer.mixer.index_heads > 0) {
      layer.mixer.index_heads = layer.mixer.index_topk = 0;
      all.operations += key_alone * layers_of_[i];
    }
    add(operations_.layer(layer, 1), layers_of_[i]);
    add(operations_.prefill(layer.mixer, 0, 1), layers_of_[i]);
  }
  add(operations_.embedding(1), 1);
  add(operations_.head(1), 1);
  return all;
}

}  // namespace orrery
