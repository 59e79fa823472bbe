// SPDX-License-Identifier: Apache-2.0
// Measures the fragments of every host that can be, and orders them by how these grow.
#include "sim/engine/packing/fragment_table.h"

#include <algorithm>
#include <map>
#include <utility>

namespace orrery {
namespace {

HostState host_with(std::vector<std::int32_t> room) {
  return {.gpu_milli = std::move(room), .model = 0, .running = {}};
}

}  // namespace

std::vector<UsualTask> usual_pieces(const std::vector<ClusterJob>& jobs, std::int32_t gpus_per_host,
                                    bool share) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts;  // accelerators, of each
  std::int64_t total = 0;
  for (const ClusterJob& job : jobs) {
    if (job.is_part() && share) {
      ++counts[{1, job.milli}];
      continue;
    }
    const std::int32_t hosts = job.gpus / gpus_per_host, rest = job.gpus % gpus_per_host;
    if (hosts > 0) counts[{gpus_per_host, whole_gpu}] += hosts;
    if (rest > 0) ++counts[{rest, whole_gpu}];
  }
  for (const auto& [size, count] : counts) total += count;
  std::vector<UsualTask> all;
  for (const auto& [size, count] : counts)
    all.push_back({{.gpus = size.first, .gpu_milli = size.second},
                   static_cast<double>(count) / static_cast<double>(total)});
  return most_usual(std::move(all));
}

FragmentTable::FragmentTable(const std::vector<UsualTask>& usual, std::int32_t gpus_per_host) {
  for (std::int32_t free = 0; free <= gpus_per_host; ++free)
    free_.push_back(
        fragments(host_with(std::vector(static_cast<std::size_t>(free), whole_gpu)), usual));
  for (std::int32_t room = 0; room < whole_gpu; ++room)
    in_use_.push_back(fragments(host_with({room}), usual));
  in_use_.push_back(0);  // nobody joins one of which nothing is taken
  for (std::int32_t gpus = 1; gpus <= gpus_per_host; ++gpus) {
    std::vector<std::int32_t>& hosts = hosts_for_.emplace_back();
    for (std::int32_t free = gpus; free <= gpus_per_host; ++free) {
      const auto before = std::find_if(hosts.begin(), hosts.end(), [&](std::int32_t other) {
        return takes(free, gpus) < takes(other, gpus) - least_growth;
      });
      hosts.insert(before, free);
    }
  }
}

}  // namespace orrery
