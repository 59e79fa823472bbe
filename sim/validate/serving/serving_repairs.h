// SPDX-License-Identifier: Apache-2.0
// Repairs cells that tables of serving runs write in their own way.
#pragma once

#include <cstdint>
#include <string>

#include "sim/validate/serving/serving_case.h"

namespace orrery {

// Repairs A1 to A4 of an aggregated row: the first whose condition holds.
void repair_aggregated(ServingCase& c);
// A5: ranks that share the experts, written as tensor parallelism of the experts.
void repair_expert_groups(ToldWorkers& workers, ServingCase& c);

// What InferenceX's application says of workers of one role.
struct DashboardWorkers {
  std::int64_t tp = 0, ep = 0, workers = 0, gpus = 0;
  bool attention_dp = false;
};
// A6: an aggregated deployment has as many accelerators as tensor-parallel ranks.
ToldWorkers aggregated_workers(const DashboardWorkers& told);
// A7: a worker has its share of its role's accelerators.
ToldWorkers worker_shares(const DashboardWorkers& told, bool expert_groups_as_tp);
// A8: no precision is that of the checkpoint.
std::string repaired_precision(const std::string& told, ServingCase& c);
// A10: what is printed for an accelerator that decodes, for each of the deployment.
double tokens_of_all(double printed, double decode_gpus, double all_gpus);

}  // namespace orrery
