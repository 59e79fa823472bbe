// SPDX-License-Identifier: Apache-2.0
// Makes a job on a cluster for tests of steps.
#pragma once

#include <string>

#include "sim/engine/scenario.h"
#include "workloads/model/model_catalog.h"

namespace orrery::test {

struct Case {
  Model model;
  Cluster cluster;
  Job job;
  Stack stack;
};

inline Case make_case(const std::string& model, const std::string& cluster, std::int64_t gpus,
                      const std::string& stack) {
  Case c{.model = load_model(model, data_root() / "workloads/catalog/models"),
         .cluster = load_cluster(cluster, gpus)};
  c.job.sequence = 4096;
  c.job.global_batch = 512;
  c.stack = load_stack(stack,
                       {.architecture = std::string(to_text(c.cluster.device.architecture)),
                        .precision = PrecisionRecipe::bf16,
                        .moe = c.model.has_experts(),
                        .task = c.job.task},
                       data_root() / "workloads/catalog/stacks");
  return c;
}

}  // namespace orrery::test
