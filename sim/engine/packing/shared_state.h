// SPDX-License-Identifier: Apache-2.0
// Holds what is left of a host whose accelerators are shared.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/cluster_job/shared_task.h"

namespace orrery {

struct HostState {
  std::int64_t cpu_milli = 0, memory_mib = 0;
  std::vector<std::int32_t> gpu_milli;  // of each accelerator
  std::int32_t model = -1;
  std::vector<std::int64_t> running;  // tasks, by their number of accelerators; a part: at 0
  std::int64_t free_milli() const;
  std::int32_t whole() const;  // accelerators of which nothing is taken
};

HostState empty_host(const SharedHost& host);
// Whether it has the accelerators; and all that the task asks for.
bool has_gpus(const HostState& host, const SharedTask& task);
bool has_room(const HostState& host, const SharedTask& task);
// Takes a part of accelerator `gpu`; several whole ones are the first that are free.
void take_task(HostState& host, const SharedTask& task, std::size_t gpu);

// Kinds of tasks that most are of, each with its share.
struct UsualTask {
  SharedTask task;
  double share = 0;
};
// The most frequent ones that make up 95% of all; shares sum to 1, before and after.
std::vector<UsualTask> usual_tasks(const std::vector<SharedTask>& tasks);
std::vector<UsualTask> most_usual(std::vector<UsualTask> all);
// Thousandths of the host's free accelerators that the usual tasks cannot use, in the mean over
// them: all where one cannot run there, else what is left of accelerators too full for it.
double fragments(const HostState& host, const std::vector<UsualTask>& usual);

}  // namespace orrery
