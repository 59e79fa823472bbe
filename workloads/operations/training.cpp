// SPDX-License-Identifier: Apache-2.0
// Lowers a training step: programs of layer classes, what lies on each pipeline position.
#include "workloads/operations/training.h"

#include <algorithm>
#include <cmath>

#include "workloads/operations/layer_operations.h"
#include "workloads/operations/sharding.h"
#include "workloads/parameters/optimizer.h"
#include "workloads/parameters/state_memory.h"
#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

// Adds a chunk's tables and MTP modules, which lie where the head is. Modules embed words too: one
// that has no embedding on its stage has a copy of it. Stages of two chunks that are mirror images
// have both ends of the model, and a table that both use once (DeepSeek-V3, 3.2.1).
void add_ends(ChunkProgram& c, const Model& model, const Job& job, const Layout& layout,
              const Stack& stack, const std::vector<LocalParameters>& local) {
  if (!c.embedding && !c.head) return;
  const double vocabulary = vocabulary_parameters(model, stack, layout);
  const std::int64_t modules = c.head ? trained_modules(model, job) : 0;
  const bool there = c.embedding || holds_two_chunks(layout.schedule);
  if (c.embedding || (modules > 0 && !there)) c.parameters += vocabulary;
  const bool own_head = c.head && (!model.tied_embeddings || !(there || modules > 0));
  if (own_head) c.parameters += vocabulary;
  if (c.head && (!model.tied_embeddings || !c.embedding))
    c.parameters += static_cast<double>(model.hidden);
  if (modules == 0) return;
  const std::size_t kind = model.layers.back();
  c.modules = static_cast<double>(modules);
  c.recomputes_modules = recomputes_modules(layout);
  (c.recomputes_modules ? c.recomputed : c.layers)[kind] += static_cast<std::int32_t>(modules);
  c.parameters += c.modules * (local[kind].dense + module_parameters(model, layout).dense);
  c.expert_parameters += c.modules * local[kind].expert;
  c.trained += c.modules * local[kind].adapters;
}

std::vector<ChunkProgram> place_layers(const Model& model, const Job& job, const Layout& layout,
                                       const Stack& stack,
                                       const std::vector<LocalParameters>& local) {
  const std::vector<Position> positions = partition_layers(model, layout, stack.sharding.partition);
  const ClassCounts none(model.classes.size(), 0);
  std::vector<ChunkProgram> chunks(positions.size(), {.layers = none, .recomputed = none});
  const std::int64_t wanted =
      layout.recompute_layers > 0 ? layout.recompute_layers * layout.vpp : model.layer_count();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Position& position = positions[i];
    const std::int64_t chunk = static_cast<std::int64_t>(i) / layout.pp;
    std::int64_t stage = static_cast<std::int64_t>(i) % layout.pp;
    if (chunk == 1 && is_v_shaped(layout.schedule)) stage = layout.pp - 1 - stage;
    ChunkProgram& c = chunks[static_cast<std::size_t>(stage * layout.vpp + chunk)];
    c.embedding = position.embedding;
    c.head = position.head;
    std::int64_t recompute = layout.recompute == Recompute::full ? wanted / layout.vpp : 0;
    for (std::int64_t l = 0; l < position.layers; ++l) {
      const auto id = static_cast<std::size_t>(position.first_layer + l);
      const std::size_t kind = model.layers[id];
      ++(recompute-- > 0 ? c.recomputed : c.layers)[kind];
      c.parameters += local[kind].dense;
      c.expert_parameters += local[kind].expert;
      c.trained += local[kind].adapters;
    }
    add_ends(c, model, job, layout, stack, local);
    if (job.task == Task::lora) {
      c.parameters += c.trained;  // adapters are held as well
    } else {
      c.trained = c.parameters;
      c.trained_experts = c.expert_parameters;
    }
  }
  return chunks;
}

}  // namespace

StepProgram lower_training(const Model& model, const Job& job, const Layout& layout,
                           const Stack& stack) {
  StepProgram program;
  const LayerOperations operations(model, job, layout, stack);
  const Sharding sharding(model, job, layout, stack);
  std::vector<LocalParameters> local;
  program.classes.reserve(model.classes.size());
  for (const LayerClass& layer : model.classes) {
    local.push_back(local_parameters(model, layer, job, layout, stack));
    program.classes.push_back(operations.layer(layer));
    sharding.add(program.classes.back(), local.back());
  }
  program.embedding = operations.embedding();
  program.head = operations.head();
  sharding.add_ends(program.embedding, program.head, vocabulary_parameters(model, stack, layout),
                    local[model.layers.front()]);
  if (trained_modules(model, job) > 0) {
    program.module = operations.module();
    sharding.add(program.module, module_parameters(model, layout));
  }
  program.chunks = place_layers(model, job, layout, stack, local);

  const bool split =
      layout.tp > 1 && (layout.sequence_parallel || stack.communication.scatter_gather_sends);
  program.send_bytes = Bytes(2.0 * static_cast<double>(operations.shape().tokens * model.hidden) /
                             static_cast<double>(split ? layout.tp : 1));
  const bool whole =
      split && !layout.sequence_parallel && !stack.communication.splits_gradient_sends;
  program.gradient_send_bytes = program.send_bytes * static_cast<double>(whole ? layout.tp : 1);
  const OptimizerCost update = optimizer_cost(layout, stack, model.hidden);
  program.optimizer_bytes_per_parameter = update.traffic_bytes;
  if (update.flop > 0) {
    // Matrices are nearly square, of the model's width.
    program.optimizer_product = operations.square_product(model.hidden);
    program.optimizer_products_per_parameter =
        update.flop / (2 * std::pow(static_cast<double>(model.hidden), 3));
  }
  return program;
}

std::vector<ChunkProgram> lower_chunks(const Model& model, const Job& job, const Layout& layout,
                                       const Stack& stack) {
  std::vector<LocalParameters> local;
  for (const LayerClass& layer : model.classes)
    local.push_back(local_parameters(model, layer, job, layout, stack));
  return place_layers(model, job, layout, stack, local);
}

}  // namespace orrery
