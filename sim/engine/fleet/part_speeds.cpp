// SPDX-License-Identifier: Apache-2.0
// Asks for the speeds of those who meet on an accelerator, of each kind of meeting once.
#include "sim/engine/fleet/part_speeds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orrery {

std::int64_t PartSpeeds::step_alone(std::uint32_t job, std::int32_t host) const {
  const JobWork& work = state_.work_of(job);
  if (!work.priced) return work.step_ps;
  return question_.prices->price(state_.job(job).work, {one_gpu_on(host)}).step_ps;
}

// In the order of the parts.
std::vector<double> PartSpeeds::speeds_of(const SharedGpu& gpu) {
  const auto user = [&](std::size_t part) {
    return PartUser{state_.job(gpu.parts[part].job).uses, gpu.parts[part].milli};
  };
  std::vector<std::size_t> order(gpu.parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return user(a) < user(b); });
  std::vector<PartUser> users;
  for (const std::size_t part : order) users.push_back(user(part));
  auto known = known_.find(users);
  if (known == known_.end()) known = known_.emplace(users, question_.prices->speeds(users)).first;
  std::vector<double> speeds(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) speeds[order[i]] = known->second[i];
  return speeds;
}

bool PartSpeeds::settle_changed(FleetTime now) {
  bool any = false;
  for (const std::uint64_t number : state_.shared().take_changed()) {
    const auto at = state_.shared().gpus().find(number);
    if (at == state_.shared().gpus().end()) continue;
    const SharedGpu& gpu = at->second;
    const std::vector<double> speeds = speeds_of(gpu);
    for (std::size_t i = 0; i < gpu.parts.size(); ++i) {
      const std::uint32_t job = gpu.parts[i].job;
      const auto alone = static_cast<double>(step_alone(job, gpu.host));
      const std::int64_t step_ps = std::llround(alone / speeds[i]);
      any = any || state_.run_of(job).step_ps != step_ps;
      state_.change_speed(job, now, step_ps, 0);
    }
  }
  return any;
}

}  // namespace orrery
