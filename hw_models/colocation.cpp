// SPDX-License-Identifier: Apache-2.0
// Hands out the time of a device to processes that share it: by turns, by kernels, or by parts.
#include "hw_models/colocation.h"

#include <algorithm>
#include <cstddef>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// Of device time, whatever takes turns: the median of two, three and four equal processes that are
// always busy, seven kinds of work, H100 SXM, driver 580.159.04, compute mode default
// (validation/measurements/shared_gpu/h100.jsonl). An H200 leaves as much: 0.908.
constexpr double left_by_turns = 0.905;

// Device time of each: its demand, or its weight's share of whatever the others leave.
std::vector<double> fair_times(std::span<const DeviceUse> uses, std::span<const double> weights,
                               double capacity) {
  std::vector<double> times(uses.size(), 0);
  std::vector<std::size_t> order(uses.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return uses[a].busy * weights[b] < uses[b].busy * weights[a];
  });
  double left = capacity, weight = 0;
  for (const double each : weights) weight += each;
  for (const std::size_t i : order) {
    times[i] = std::min(uses[i].busy, left * weights[i] / weight);
    left -= times[i];
    weight -= weights[i];
  }
  return times;
}

double limited_speed(const DeviceUse& use) { return 1 / (1 - use.busy + use.busy / use.part); }

}  // namespace

std::vector<double> shared_speeds(DeviceShare how, std::span<const DeviceUse> uses) {
  std::vector<double> speeds, weights;
  for (const DeviceUse& use : uses) {
    CHECK_THAT(
        use.busy > 0 && use.busy <= 1 && use.part > 0 && use.part <= 1 && use.kernel.si() > 0,
        "a process keeps a device busy for a share of its time, with kernels of some length");
    speeds.push_back(how == DeviceShare::mps_limits ? limited_speed(use) : 1);
    weights.push_back(how == DeviceShare::mps ? use.kernel.si() : 1);
  }
  if (how == DeviceShare::mps_limits || uses.size() < 2) return speeds;
  const double capacity = how == DeviceShare::time_slices ? left_by_turns : 1;
  const std::vector<double> times = fair_times(uses, weights, capacity);
  for (std::size_t i = 0; i < uses.size(); ++i) speeds[i] = times[i] / uses[i].busy;
  return speeds;
}

}  // namespace orrery
