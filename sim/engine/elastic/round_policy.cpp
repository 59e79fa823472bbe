// SPDX-License-Identifier: Apache-2.0
// Places what policies that look at the number of accelerators alone decided.
#include "sim/engine/elastic/round_policy.h"

#include <algorithm>

namespace orrery {

std::unique_ptr<RoundPolicy> round_policy(RoundRule rule) {
  switch (rule) {
    case RoundRule::las:
      return las_policy();
    case RoundRule::optimus:
      return optimus_policy();
    case RoundRule::max_min:
      return max_min_policy();
    case RoundRule::fair:
      return finish_fair_policy();
    case RoundRule::goodput:
      break;
  }
  return goodput_policy();
}

std::int32_t next_size(const ElasticJob& job, std::int32_t gpus) {
  if (job.sizes.empty()) return gpus < job.most ? gpus + 1 : 0;
  const auto next = std::upper_bound(job.sizes.begin(), job.sizes.end(), gpus);
  return next == job.sizes.end() ? 0 : *next;
}

void place_emptiest(const RoundView& view, const std::vector<std::int32_t>& gpus,
                    const std::vector<std::size_t>& order, std::vector<Grants>& places) {
  HostRoom room(view.question.hosts, view.question.gpus_per_host);
  for (const std::size_t i : order) {
    const Grants& now = *view.jobs[i].place;
    if (gpus[i] == 0 || gpus_of_place(now) != gpus[i]) continue;
    places[i] = now;
    room.take(now);
  }
  for (const std::size_t i : order)
    if (gpus[i] > 0 && places[i].empty()) places[i] = room.take_emptiest(gpus[i]);
}

std::vector<std::int32_t> gangs_in_order(const RoundView& view,
                                         const std::vector<std::size_t>& order) {
  std::vector<std::int32_t> out(view.jobs.size(), 0);
  std::int64_t free = view.gpus;
  for (const std::size_t i : order) {
    const std::int32_t gpus = view.jobs[i].asked->gpus;
    if (gpus > free) continue;
    out[i] = gpus;
    free -= gpus;
  }
  return out;
}

}  // namespace orrery
