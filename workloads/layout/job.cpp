// SPDX-License-Identifier: Apache-2.0
// Names tasks and counts their tokens.
#include "workloads/layout/job.h"

#include "sim/base/json/json.h"

namespace orrery {

double dropout_from(const JsonValue& at) {
  const double rate = at.number();
  if (rate < 0 || rate >= 1) at.fail("a rate from 0 (none) to below 1");
  return rate;
}

double tokens_per_step(const Job& job, std::int64_t replicas) {
  if (is_training(job.task)) return static_cast<double>(job.global_batch * job.sequence);
  const double sequences = static_cast<double>(replicas) * static_cast<double>(job.batch);
  return job.task == Task::prefill ? sequences * static_cast<double>(job.sequence) : sequences;
}

}  // namespace orrery
