// SPDX-License-Identifier: Apache-2.0
// Sums over a model's layers what the operations of a serving step take.
#include "sim/engine/prices/segments.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

// What lies between attention and its output projection, over latents, is attention's as well.
bool is_shown(const Operation& operation) {
  const Kernel* kernel = operation.kernel();
  const bool label = operation.label == Label::gemm || operation.label == Label::elementwise;
  return kernel != nullptr && label && kernel->work.groups <= 1;
}

bool is_routed(const Operation& operation) {
  const Kernel* kernel = operation.kernel();
  return operation.label == Label::expert && kernel != nullptr &&
         kernel->work.kind != WorkKind::gemm && kernel->work.kind != WorkKind::router;
}

// A product and the quantisation of its operand are one call, and so may routed experts be.
Launches launches_of(const Segment& segment, bool experts_at_once) {
  Launches found;
  bool experts = false;  // were launched
  for (const auto* operations : {&segment.operations, &segment.second.operations})
    for (const Operation& operation : *operations) {
      if (operation.label == Label::quantise) continue;
      if (experts_at_once && is_routed(operation) && std::exchange(experts, true)) continue;
      found.operations += 1;
      if (operation.collective() != nullptr) found.collectives += 1;
      if (operations == &segment.operations && is_shown(operation)) found.shown += 1;
    }
  return found;
}

// Tokens of a prompt among whose keys the indexer, if there is one, has to choose.
std::int64_t long_prompt(const Mixer& mixer) {
  return (mixer.index_topk + 1) * std::max<std::int64_t>(1, mixer.compress);
}

}  // namespace

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
  const SustainedPass held =
      sustained_pass(burst, phase.paced, phase.energy, phase.clocked, context_.device);
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

PhaseTime Segments::ended(std::int64_t sampled, bool in_graph) const {
  PhaseTime end = head(sampled, in_graph);
  if (sampled > 0) end.time[static_cast<std::size_t>(Label::loss)] += operations_.between_steps();
  return end;
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

// A layer without its mixer has neither what it does nor the last product and its all-reduce.
double Segments::latent_launches() const {
  double all = 0;
  for (std::size_t i = 0; i < layers_of_.size(); ++i) {
    const LayerClass& layer = model_.classes[i];
    if (layer.mixer.kind != MixerKind::mla) continue;
    LayerClass bare = layer;
    bare.mixer.kind = MixerKind::none;
    const Launches with = launches_of(operations_.layer(layer, 1), false);
    const Launches without = launches_of(operations_.layer(bare, 1), false);
    const Launches prompt =
        launches_of(operations_.prefill(layer.mixer, 0, long_prompt(layer.mixer)), false);
    const double collectives = with.collectives - without.collectives;
    all += layers_of_[i] *
           (with.operations - without.operations - collectives - 1 + prompt.operations);
  }
  return all;
}

Launches Segments::launches(bool indexed) const {
  // Of an indexer whose choice is all: its key's product, and what writes the key.
  constexpr double key_alone = 2;
  Launches all;
  const auto add = [&](const Segment& segment, double times) {
    const Launches found = launches_of(segment, operations_.kernels().experts_at_once);
    all.operations += times * found.operations;
    all.collectives += times * found.collectives;
    all.shown += times * found.shown;
  };
  for (std::size_t i = 0; i < layers_of_.size(); ++i) {
    LayerClass layer = model_.classes[i];
    if (!indexed && layer.mixer.index_heads > 0) {
      layer.mixer.index_heads = layer.mixer.index_topk = 0;
      all.operations += key_alone * layers_of_[i];
    }
    add(operations_.layer(layer, 1), layers_of_[i]);
    add(operations_.prefill(layer.mixer, 0, long_prompt(layer.mixer)), layers_of_[i]);
  }
  add(operations_.embedding(1), 1);
  add(operations_.head(1), 1);
  return all;
}

}  // namespace orrery
