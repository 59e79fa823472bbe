// SPDX-License-Identifier: Apache-2.0
// Tries the batches of an application and keeps what was found.
#include "sim/engine/elastic/pace_table.h"

namespace orrery {

JobPace PaceTable::pace(const ElasticJob& job, std::int32_t gpus, bool several_hosts) {
  // GPUs are at most 10^7 and fixed batches 10^9, which are 24 and 30 bits; 9 are left for
  // applications: two batches or applications that share a key would need more than 512.
  const std::uint64_t batch = job.free_batch ? 0 : static_cast<std::uint64_t>(job.batch);
  const std::uint64_t key = (static_cast<std::uint64_t>(job.application) << 55) ^ (batch << 25) ^
                            (static_cast<std::uint64_t>(gpus) << 1) ^ (several_hosts ? 1 : 0);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(key, best(job, gpus, several_hosts)).first->second;
}

JobPace PaceTable::best(const ElasticJob& job, std::int32_t gpus, bool several_hosts) const {
  const ElasticApplication& application = applications_[job.application];
  const auto at = [&](std::int64_t batch) {
    return JobPace{batch, application.step_ps(gpus, several_hosts ? 2 : 1, batch),
                   step_worth(application, batch)};
  };
  if (!job.free_batch) return gpus <= application.most_gpus(job.batch) ? at(job.batch) : JobPace{};
  JobPace out;
  for (const std::int64_t batch : application.batches()) {
    if (gpus > application.most_gpus(batch)) continue;
    const JobPace one = at(batch);
    if (out.batch == 0 || one.rate() > out.rate()) out = one;
  }
  return out;
}

}  // namespace orrery
