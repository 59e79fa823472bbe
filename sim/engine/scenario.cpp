// SPDX-License-Identifier: Apache-2.0
// Finds the stack that a job runs on a cluster.
#include "sim/engine/scenario.h"

namespace orrery {

StackContext stack_context(const Cluster& cluster, const Model& model, const Job& job,
                           PrecisionRecipe precision) {
  return {.architecture = std::string(to_text(cluster.device.architecture)),
          .device = cluster.device.name,
          .model = model.name,
          .family = model.family,
          .precision = precision,
          .moe = model.has_experts(),
          .task = job.task};
}

Stack catalogue_stack(const std::string& name, const Cluster& cluster, const Model& model,
                      const Job& job, PrecisionRecipe precision) {
  return load_stack(name, stack_context(cluster, model, job, precision),
                    data_root() / "workloads/catalog/stacks");
}

}  // namespace orrery
