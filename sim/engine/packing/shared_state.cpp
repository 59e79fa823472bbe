// SPDX-License-Identifier: Apache-2.0
// Counts what is left of shared hosts, and how much of it is of no use.
#include "sim/engine/packing/shared_state.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

constexpr double usual_share = 0.95;

auto order_of(const SharedTask& t) {
  return std::make_tuple(t.cpu_milli, t.gpu_milli, t.gpus, t.models);
}

}  // namespace

std::int64_t HostState::free_milli() const {
  std::int64_t sum = 0;
  for (const std::int32_t left : gpu_milli) sum += left;
  return sum;
}

std::int32_t HostState::whole() const {
  return static_cast<std::int32_t>(std::count(gpu_milli.begin(), gpu_milli.end(), whole_gpu));
}

HostState empty_host(const SharedHost& host) {
  HostState state;
  state.cpu_milli = host.cpu_milli;
  state.memory_mib = host.memory_mib;
  state.gpu_milli.assign(static_cast<std::size_t>(host.gpus), whole_gpu);
  state.model = host.model;
  state.running.assign(static_cast<std::size_t>(host.gpus) + 1, 0);
  return state;
}

bool has_gpus(const HostState& host, const SharedTask& task) {
  if (task.gpus == 0) return true;
  if (host.model < 0 || (task.models >> host.model & 1) == 0) return false;
  const auto able = std::count_if(host.gpu_milli.begin(), host.gpu_milli.end(),
                                  [&](std::int32_t left) { return left >= task.gpu_milli; });
  return able >= task.gpus;
}

bool has_room(const HostState& host, const SharedTask& task) {
  return host.cpu_milli >= task.cpu_milli && host.memory_mib >= task.memory_mib &&
         has_gpus(host, task);
}

void take_task(HostState& host, const SharedTask& task, std::size_t gpu) {
  host.cpu_milli -= task.cpu_milli;
  host.memory_mib -= task.memory_mib;
  if (task.is_part()) {
    host.gpu_milli[gpu] -= task.gpu_milli;
    ++host.running[0];
    return;
  }
  if (task.gpus == 0) return;
  std::int32_t wanted = task.gpus;
  for (std::int32_t& left : host.gpu_milli)
    if (wanted > 0 && left == whole_gpu) {
      left = 0;
      --wanted;
    }
  ++host.running[static_cast<std::size_t>(task.gpus)];
}

std::vector<UsualTask> usual_tasks(const std::vector<SharedTask>& tasks) {
  std::vector<SharedTask> sorted = tasks;
  // What a host must have of memory does not tell kinds apart.
  for (SharedTask& task : sorted) task.memory_mib = 0;
  std::sort(sorted.begin(), sorted.end(),
            [](const SharedTask& a, const SharedTask& b) { return order_of(a) < order_of(b); });
  std::vector<UsualTask> all;
  for (const SharedTask& task : sorted) {
    if (all.empty() || !(all.back().task == task)) all.push_back({task, 0});
    all.back().share += 1 / static_cast<double>(tasks.size());
  }
  return most_usual(std::move(all));
}

std::vector<UsualTask> most_usual(std::vector<UsualTask> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const UsualTask& a, const UsualTask& b) { return a.share > b.share; });
  double sum = 0;
  std::size_t kept = 0;
  while (kept < all.size() && sum < usual_share) sum += all[kept++].share;
  all.resize(kept);
  for (UsualTask& one : all) one.share /= sum;
  return all;
}

double fragments(const HostState& host, const std::vector<UsualTask>& usual) {
  const std::int64_t free = host.free_milli();
  if (free == 0) return 0;
  double sum = 0;
  for (const UsualTask& one : usual) {
    const bool runs =
        one.task.gpus > 0 && host.cpu_milli >= one.task.cpu_milli && has_gpus(host, one.task);
    std::int64_t lost = free;
    if (runs) {
      lost = 0;
      for (const std::int32_t left : host.gpu_milli)
        if (left < one.task.gpu_milli) lost += left;
    }
    sum += one.share * static_cast<double>(lost);
  }
  return sum;
}

}  // namespace orrery
