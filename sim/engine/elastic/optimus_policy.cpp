// SPDX-License-Identifier: Apache-2.0
// Gives accelerators where they shorten a job's remaining time most, as Optimus does.
#include <algorithm>
#include <numeric>
#include <queue>

#include "sim/engine/elastic/round_policy.h"

namespace orrery {
namespace {

// What the next size takes off the time that is left, by each of its further accelerators.
struct MarginalGain {
  double gain = 0;
  std::int32_t size = 0;
  std::size_t job = 0;
  bool operator<(const MarginalGain& o) const {
    return gain != o.gain ? gain < o.gain : job > o.job;
  }
};

MarginalGain marginal_gain(const RoundView& view, std::size_t i, std::int32_t gpus) {
  const RoundJob& job = view.jobs[i];
  const std::int32_t size = next_size(*job.asked, gpus);
  MarginalGain out{.size = size, .job = i};
  if (size == 0) return out;
  const JobPace now = view.packed_pace(job, gpus), next = view.packed_pace(job, size);
  if (now.batch == 0 || next.batch == 0) return out;
  out.gain = JobPaces::time_left_ps(now, job.left) - JobPaces::time_left_ps(next, job.left);
  out.gain /= size - gpus;
  return out;
}

// Peng et al., Optimus, EuroSys 2018: all jobs get the fewest that they run on, then one by one
// whoever gains most; the oldest of equals. Where one more is of no use (the step to a second host)
// a job gets no more, though two might be.
class OptimusPolicy : public RoundPolicy {
 public:
  void decide(const RoundView& view, std::vector<Grants>& places) override {
    const std::vector<std::int32_t> gpus = sizes(view);
    // Small jobs are placed first.
    std::vector<std::size_t> order(view.jobs.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return gpus[a] < gpus[b]; });
    place_emptiest(view, gpus, order, places);
  }

  std::vector<std::int32_t> sizes(const RoundView& view) override {
    std::vector<std::int32_t> out(view.jobs.size(), 0);
    std::int64_t free = view.gpus;
    std::priority_queue<MarginalGain> gains;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int32_t least = std::max(1, view.jobs[i].asked->least);
      if (least > free) continue;
      out[i] = least;
      free -= least;
      gains.push(marginal_gain(view, i, least));
    }
    while (free > 0 && !gains.empty() && gains.top().gain > 0) {
      const MarginalGain best = gains.top();
      gains.pop();
      const std::int32_t more = best.size - out[best.job];
      if (more > free) continue;
      out[best.job] = best.size;
      free -= more;
      gains.push(marginal_gain(view, best.job, best.size));
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<RoundPolicy> optimus_policy() { return std::make_unique<OptimusPolicy>(); }

}  // namespace orrery
