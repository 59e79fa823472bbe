// SPDX-License-Identifier: Apache-2.0
// Knows small questions whose whole grid a test can simulate in a moment, and how to walk a grid.
#pragma once

#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/advise/advisor.h"

namespace orrery {

inline Model small_dense_model() {
  Model model;
  model.name = "small-dense";
  model.hidden = 4096;
  model.vocab = 32000;
  LayerClass layer;
  layer.mixer.heads = 32;
  layer.mixer.kv_heads = 8;
  layer.ffn.width = 14336;
  model.classes = {layer};
  model.layers.assign(16, 0);
  return model;
}

inline Model small_expert_model() {
  Model model = small_dense_model();
  model.name = "small-expert";
  LayerClass layer = model.classes.front();
  layer.ffn.kind = FfnKind::moe;
  layer.ffn.width = 2048;
  layer.ffn.experts = 8;
  layer.ffn.topk = 2;
  model.classes = {layer};
  return model;
}

inline Job small_job(std::int64_t sequence = 4096, std::int64_t batch = 32) {
  Job job;
  job.sequence = sequence;
  job.global_batch = batch;
  return job;
}

inline Stack small_stack(const Model& model) {
  return load_stack("megatron-core", {.architecture = "hopper", .moe = model.has_experts()},
                    data_root() / "workloads/catalog/stacks");
}

inline Question small_question(const Model& model, std::int64_t gpus) {
  Question question;
  question.cluster = load_cluster("dgx-h100", gpus);
  question.model = model;
  question.job = small_job();
  question.stack_name = "megatron-core";
  return question;
}

// A stack that offers every schedule and nothing that only saves memory or moves ranks: its grid is
// small.
inline Stack plain_stack(const Model& model) {
  Stack stack = small_stack(model);
  stack.choices = {};
  stack.choices.zero_stages = {1, 3};
  stack.choices.recompute_modules = {RecomputeModule::core_attn};
  stack.choices.rank_orders = {RankOrder()};
  stack.choices.offload_weights = stack.choices.offload_optimizer =
      stack.choices.offload_activations = false;
  stack.choices.uneven_stages = stack.choices.recompute_part = stack.choices.bucket_size = false;
  return stack;
}

inline SearchSubject subject_of(const Question& q, const Stack& stack) {
  return {.model = q.model,
          .job = q.job,
          .fabric = q.cluster.fabric,
          .stack = stack,
          .gpus = q.cluster.gpus,
          .precision = q.precisions.front(),
          .optimizer = q.optimizers.empty() ? stack.defaults.optimizer : q.optimizers.front()};
}

// Every layout of a space, in the grid's order.
inline std::vector<Layout> layouts_of(const SearchSpace& space) {
  std::vector<Layout> all;
  for (const Family& family : space.families()) {
    GridPoint point;
    do all.push_back(family.layout(point));
    while (advance(family, point));
  }
  return all;
}

}  // namespace orrery
