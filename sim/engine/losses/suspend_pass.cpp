// SPDX-License-Identifier: Apache-2.0
// Chooses whom to stop for want of power.
#include "sim/engine/losses/suspend_pass.h"

#include <algorithm>
#include <vector>

#include "sim/engine/fleet/stop_order.h"

namespace orrery {

std::vector<std::uint32_t> SuspendPass::in_order(
    const std::function<std::int64_t(std::uint32_t)>& freed) const {
  std::vector<std::uint32_t> jobs;
  state_.ends().each([&](const RunningEnd& end) {
    const bool may = state_.job(end.job).preemptible && !state_.saves().contains(end.job);
    if (may && freed(end.job) > 0) jobs.push_back(end.job);
    return true;
  });
  sort_for_stops(state_, jobs);
  return jobs;
}

std::int64_t SuspendPass::free(std::int64_t milliwatts, FleetTime now,
                               const std::function<std::int64_t(std::uint32_t)>& freed,
                               std::string_view cause) {
  for (const auto& [job, save] : state_.saves()) milliwatts -= freed(job);
  if (milliwatts <= 0) return 0;
  std::vector<std::uint32_t> stopped;
  for (const std::uint32_t job : in_order(freed)) {
    if (milliwatts <= 0) break;
    milliwatts -= freed(job);
    stopped.push_back(job);
  }
  // Whoever came first into the choice may not be needed any more.
  std::erase_if(stopped, [&](std::uint32_t job) {
    const std::int64_t without = milliwatts + freed(job);
    if (without > 0) return false;
    milliwatts = without;
    return true;
  });
  stopped_ += static_cast<std::int64_t>(stopped.size());
  for (const std::uint32_t job : stopped) state_.preempt(job, now, cause);
  return std::max<std::int64_t>(milliwatts, 0);
}

}  // namespace orrery
