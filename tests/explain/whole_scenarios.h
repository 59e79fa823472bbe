// SPDX-License-Identifier: Apache-2.0
// Knows whole scenarios by a few words, for tests that simulate them.
#pragma once

#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/engine/scenario.h"
#include "workloads/model/model_catalog.h"

namespace orrery {

struct ScenarioWords {
  const char* cluster = "dgx-h100";
  const char* model = "llama3-8b";
  const char* stack = "megatron-core";
  Layout layout = {};
  std::int64_t sequence = 4096, batch = 64;
};

inline Scenario whole_scenario(const ScenarioWords& w) {
  Scenario s;
  s.cluster = load_cluster(w.cluster, w.layout.gpus());
  s.model = read_model(load_catalog_entry("workloads/catalog/models", "model", w.model));
  s.job.sequence = w.sequence;
  s.job.global_batch = w.batch;
  s.layout = w.layout;
  s.stack = load_stack(w.stack,
                       {.architecture = std::string(to_text(s.cluster.device.architecture)),
                        .device = s.cluster.device.name,
                        .model = s.model.name,
                        .family = s.model.family,
                        .precision = w.layout.precision,
                        .moe = s.model.has_experts(),
                        .task = s.job.task},
                       data_root() / "workloads/catalog/stacks");
  return s;
}

// Dense and expert models, one host to many, every kind of parallelism and schedule.
inline std::vector<ScenarioWords> varied_scenarios() {
  return {
      {.layout = {.tp = 2, .dp = 4}},
      {.layout = {.tp = 8, .pp = 2, .dp = 4, .micro_batch = 2}},
      {.layout = {.tp = 4, .pp = 4, .vpp = 2, .dp = 2, .schedule = Schedule::interleaved}},
      {.layout = {.dp = 16, .cp = 2, .zero_stage = 3, .recompute = Recompute::full}},
      {.cluster = "dgx-a100", .layout = {.tp = 2, .pp = 2, .dp = 4}},
      {.cluster = "gb200-nvl72",
       .layout = {.tp = 2, .dp = 36, .precision = PrecisionRecipe::mxfp8},
       .batch = 72},
      {.cluster = "dgx-b200", .model = "mixtral-8x7b", .layout = {.dp = 32, .ep = 8}},
      {.model = "qwen3-30b-a3b", .stack = "nemo@25.09", .layout = {.dp = 32, .ep = 8}},
      {.model = "deepseek-v3",
       .layout = {.pp = 8, .vpp = 2, .dp = 16, .ep = 16, .schedule = Schedule::dual_pipe_v},
       .batch = 512},
      {.model = "llama3-70b",
       .stack = "pytorch-fsdp2",
       .layout = {.tp = 8, .dp = 8, .zero_stage = 3}},
  };
}

}  // namespace orrery
