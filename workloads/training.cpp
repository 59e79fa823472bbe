// Lowers a training step: programs of layer classes, what lies on each pipeline position.
#include "workloads/training.h"

#include <algorithm>

#include "workloads/layer_operations.h"
#include "workloads/optimizer.h"
#include "workloads/sharding.h"
#include "workloads/state_memory.h"

namespace orrery {
namespace {

double vocabulary_parameters(const Model& model, const Layout& layout, const Stack& stack) {
  return static_cast<double>(model.vocab) * static_cast<double>(model.hidden) /
         static_cast<double>(stack.splits_vocabulary ? layout.tp : 1);
}

// Rank-r adapters on every linear layer hold about r * 2 / hidden of its parameters.
double trainable_share(const Model& model, const Job& job) {
  if (job.task != Task::lora) return 1;
  return std::min(1.0,
                  2.0 * static_cast<double>(job.lora_rank) / static_cast<double>(model.hidden));
}

std::vector<ChunkProgram> place_layers(const Model& model, const Layout& layout, const Stack& stack,
                                       const std::vector<LocalParameters>& local) {
  const std::vector<Position> positions = partition_layers(model, layout, stack.partition);
  std::vector<ChunkProgram> chunks(positions.size());
  const double vocabulary = vocabulary_parameters(model, layout, stack);
  const std::int64_t wanted =
      layout.recompute_layers > 0 ? layout.recompute_layers * layout.vpp : model.layer_count();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Position& position = positions[i];
    const std::int64_t chunk = static_cast<std::int64_t>(i) / layout.pp;
    std::int64_t stage = static_cast<std::int64_t>(i) % layout.pp;
    if (chunk == 1 && is_v_shaped(layout.schedule)) stage = layout.pp - 1 - stage;
    ChunkProgram& c = chunks[static_cast<std::size_t>(stage * layout.vpp + chunk)];
    c.layers.assign(model.classes.size(), 0);
    c.recomputed.assign(model.classes.size(), 0);
    c.embedding = position.embedding;
    c.head = position.head;
    std::int64_t recompute = layout.recompute == Recompute::full ? wanted / layout.vpp : 0;
    for (std::int64_t l = 0; l < position.layers; ++l) {
      const auto id = static_cast<std::size_t>(position.first_layer + l);
      const std::size_t kind = model.layers[id];
      ++(recompute-- > 0 ? c.recomputed : c.layers)[kind];
      c.parameters += local[kind].dense;
      c.expert_parameters += local[kind].expert;
    }
    if (c.embedding) c.parameters += vocabulary;
    const bool own_head = c.head && (!model.tied_embeddings || !c.embedding);
    if (own_head) c.parameters += vocabulary + static_cast<double>(model.hidden);
  }
  return chunks;
}

}  // namespace

TrainingProgram lower_training(const Model& model, const Job& job, const Layout& layout,
                               const Stack& stack) {
  TrainingProgram program;
  const LayerOperations operations(model, job, layout, stack);
  program.trainable_share = trainable_share(model, job);
  const Sharding sharding(model, job, layout, stack, program.trainable_share);
  std::vector<LocalParameters> local;
  program.classes.reserve(model.classes.size());
  for (const LayerClass& layer : model.classes) {
    local.push_back(local_parameters(model, layer, layout));
    program.classes.push_back(operations.layer(layer));
    sharding.add(program.classes.back(), local.back());
  }
  program.embedding = operations.embedding();
  program.head = operations.head();
  sharding.add_ends(program.embedding, program.head, vocabulary_parameters(model, layout, stack),
                    local[model.layers.front()]);
  program.chunks = place_layers(model, layout, stack, local);
  if (job.mtp) program.mtp_layers = static_cast<double>(model.mtp_layers);

  const bool split = layout.tp > 1 && (layout.sequence_parallel || stack.scatter_gather_sends);
  program.send_bytes = 2.0 * static_cast<double>(operations.shape().tokens * model.hidden) /
                       static_cast<double>(split ? layout.tp : 1);
  const bool whole = split && !layout.sequence_parallel && !stack.splits_gradient_sends;
  program.gradient_send_bytes = program.send_bytes * static_cast<double>(whole ? layout.tp : 1);
  const OptimizerCost update = optimizer_cost(layout, stack, model.hidden);
  program.optimizer_bytes_per_parameter = update.traffic_bytes;
  program.optimizer_flop_per_parameter = update.flop;
  return program;
}

std::vector<ChunkProgram> lower_chunks(const Model& model, const Layout& layout,
                                       const Stack& stack) {
  std::vector<LocalParameters> local;
  for (const LayerClass& layer : model.classes)
    local.push_back(local_parameters(model, layer, layout));
  return place_layers(model, layout, stack, local);
}

}  // namespace orrery
