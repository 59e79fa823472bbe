// SPDX-License-Identifier: Apache-2.0
// Scores hosts for tasks.
#include "sim/engine/packing/fill_score.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr std::int32_t most_points = 100;
// The largest host of the scores: 128 processors and 8 accelerators (Weng et al.).
constexpr double largest_cpu = 128'000, largest_gpu = 8'000;

std::int32_t points(double share) { return static_cast<std::int32_t>(share * most_points); }

// The fullest accelerator that has room for a part.
std::int32_t fullest_gpu(const HostState& host, const SharedTask& task) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < host.gpu_milli.size(); ++i)
    if (host.gpu_milli[i] >= task.gpu_milli &&
        (best < 0 || host.gpu_milli[i] < host.gpu_milli[static_cast<std::size_t>(best)]))
      best = static_cast<std::int32_t>(i);
  return best;
}

double shares_of(double cpu, double gpu) {
  return 0.5 * cpu / largest_cpu + 0.5 * gpu / largest_gpu;
}

std::int32_t best_fit(const HostState& host, const SharedTask& task) {
  return points(1 - shares_of(static_cast<double>(host.cpu_milli - task.cpu_milli),
                              static_cast<double>(host.free_milli() - task.total_milli())));
}

std::int32_t dot_product(const HostState& host, const SharedTask& task) {
  const double cpu = static_cast<double>(host.cpu_milli) * static_cast<double>(task.cpu_milli);
  const double gpu =
      static_cast<double>(host.free_milli()) * static_cast<double>(task.total_milli());
  return points(1 - 0.5 * (cpu / (largest_cpu * largest_cpu) + gpu / (largest_gpu * largest_gpu)));
}

std::int32_t packing(const HostState& host, const SharedTask& task) {
  if (task.gpus == 0) return 0;
  const std::int32_t whole = host.whole();
  if (whole == static_cast<std::int32_t>(host.gpu_milli.size()))
    return std::max(most_points / 3 - whole, whole);
  if (!task.is_part()) return std::max(most_points / 2 - task.gpus, most_points / 3);
  const std::int32_t left = host.gpu_milli[static_cast<std::size_t>(fullest_gpu(host, task))];
  if (left == whole_gpu) return std::max(most_points / 2 - 1, most_points / 3);
  return std::max(most_points - left * 100 / whole_gpu / 10, most_points / 2);
}

std::int32_t clustering(const HostState& host, const SharedTask& task) {
  if (task.gpus == 0) return 0;
  const auto mine = static_cast<std::size_t>(task.is_part() ? 0 : task.gpus);
  const auto kinds = std::count_if(host.running.begin(), host.running.end(),
                                   [](std::int64_t count) { return count > 0; });
  const std::int32_t quarter = most_points / 4;
  const auto full = static_cast<std::int32_t>(
      quarter * (static_cast<std::int64_t>(largest_gpu) - host.free_milli()) /
      static_cast<std::int64_t>(largest_gpu));
  if (host.running[mine] > 0) return full + (kinds == 1 ? 3 : 2) * quarter;
  return full + (kinds == 0 ? quarter : 0);
}

std::int32_t gradient_points(double before, double after) {
  return points(1 / (1 + std::exp(-(before - after) / whole_gpu)));
}

FillScore fragmentation(const HostState& host, const SharedTask& task,
                        const std::vector<UsualTask>& usual) {
  const double before = fragments(host, usual);
  FillScore best{-1, 0};
  HostState after = host;
  if (!task.is_part()) {
    take_task(after, task, 0);
    return {gradient_points(before, fragments(after, usual)), 0};
  }
  after.cpu_milli -= task.cpu_milli;
  for (std::size_t i = 0; i < host.gpu_milli.size(); ++i) {
    if (host.gpu_milli[i] < task.gpu_milli) continue;
    after.gpu_milli[i] -= task.gpu_milli;
    const std::int32_t found = gradient_points(before, fragments(after, usual));
    after.gpu_milli[i] += task.gpu_milli;
    if (found > best.points) best = {found, static_cast<std::int32_t>(i)};
  }
  return best;
}

}  // namespace

FillScore fill_score(FillRule rule, const HostState& host, const SharedTask& task,
                     const std::vector<UsualTask>& usual) {
  if (!has_room(host, task)) return {};
  const std::int32_t gpu = task.is_part() ? fullest_gpu(host, task) : 0;
  switch (rule) {
    case FillRule::random:
      return {0, -1};
    case FillRule::best_fit:
      return {best_fit(host, task), gpu};
    case FillRule::dot_product:
      return {dot_product(host, task), gpu};
    case FillRule::packing:
      return {packing(host, task), gpu};
    case FillRule::clustering:
      return {clustering(host, task), gpu};
    case FillRule::fragmentation:
      return fragmentation(host, task, usual);
  }
  return {};
}

}  // namespace orrery
