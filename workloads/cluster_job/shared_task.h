// SPDX-License-Identifier: Apache-2.0
// Knows tasks that ask for parts of accelerators, processors and memory, and the hosts that they
// ask it of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

struct SharedHost {
  std::int64_t cpu_milli = 0, memory_mib = 0;
  std::int32_t gpus = 0;
  std::int32_t model = -1;  // of SharedHosts::models; -1: it has no accelerators
};

// One accelerator or a part of it, several whole ones, or none.
struct SharedTask {
  std::int64_t cpu_milli = 0, memory_mib = 0;
  std::int32_t gpus = 0;
  std::int32_t gpu_milli = 0;    // of each: whole_gpu where there are several
  std::uint64_t models = ~0ULL;  // those that it may run on, a bit each
  bool is_part() const { return gpus == 1 && gpu_milli < whole_gpu; }
  std::int64_t total_milli() const { return static_cast<std::int64_t>(gpus) * gpu_milli; }
  friend bool operator==(const SharedTask&, const SharedTask&) = default;
};

struct SharedHosts {
  std::vector<SharedHost> hosts;
  std::vector<std::string> models;  // names, at most 64
  std::int64_t gpus() const;
};

// The file that an entry of job_traces/index.json names ("shared_hosts", "shared_tasks"), or the
// path itself. Error: neither, with the nearest name; `flag` says where it stood.
std::filesystem::path shared_file(const std::string& name_or_path, const std::string& kind,
                                  const std::filesystem::path& catalog_folder,
                                  const std::string& flag);

// Columns sn, cpu_milli, memory_mib, gpu, model, as Alibaba's openb has them. Errors: figures below
// 0, more than 64 accelerators in a host or 64 models, a host with accelerators without a model, no
// accelerators at all.
SharedHosts read_shared_hosts(const std::filesystem::path& file);
// Columns cpu_milli, memory_mib, num_gpu, gpu_milli and perhaps gpu_spec (models with |). Errors:
// figures out of range, parts of several accelerators, a model that no host has, no task that asks
// for accelerators.
std::vector<SharedTask> read_shared_tasks(const std::filesystem::path& file,
                                          const SharedHosts& cluster);

}  // namespace orrery
