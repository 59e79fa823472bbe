// SPDX-License-Identifier: Apache-2.0
// Gives every job the same accelerator-time, in slices, as Gavel's max-min fairness does.
#include <algorithm>
#include <map>

#include "sim/engine/elastic/round_slices.h"

namespace orrery {
namespace {

// Narayanan et al., Gavel, OSDI 2020, with one kind of accelerator: the least share is the largest
// where all get the same GPU-time, or all that they can use. What a job is owed adds up; whoever is
// owed most runs in the next slice, the oldest of equals. Between slices only free accelerators are
// given.
class MaxMinPolicy : public RoundPolicy {
 public:
  std::vector<std::int32_t> sizes(const RoundView& view) override {
    charge(view);
    order_ = slice_order(view, slices_.next(view.question.slice_rounds),
                         [&](std::size_t a, std::size_t b) {
                           return owed_.at(view.jobs[a].number) > owed_.at(view.jobs[b].number);
                         });
    charged_ = view.now;
    return gangs_in_order(view, order_);
  }
  void decide(const RoundView& view, std::vector<Grants>& places) override {
    const std::vector<std::int32_t> gpus = sizes(view);
    place_emptiest(view, gpus, order_, places);
  }

 private:
  // GPU-time since the last decision: what jobs held is taken off, what all should have had is
  // added.
  void charge(const RoundView& view) {
    std::map<std::uint32_t, GpuMicros> owed;
    for (const RoundJob& job : view.jobs) {
      const auto before = owed_.find(job.number);
      owed[job.number] = before == owed_.end() ? 0 : before->second;
    }
    const FleetTime passed = view.now - charged_;
    for (const RoundJob& job : view.jobs)
      owed[job.number] -= static_cast<GpuMicros>(gpus_of_place(*job.place)) * passed.us;
    std::vector<const RoundJob*> by_size;
    for (const RoundJob& job : view.jobs)
      if (owed_.contains(job.number)) by_size.push_back(&job);
    std::stable_sort(by_size.begin(), by_size.end(), [](const RoundJob* a, const RoundJob* b) {
      return a->asked->gpus < b->asked->gpus;
    });
    GpuMicros left = static_cast<GpuMicros>(view.gpus) * passed.us;
    for (std::size_t i = 0; i < by_size.size(); ++i) {
      const GpuMicros share = std::min(static_cast<GpuMicros>(by_size[i]->asked->gpus) * passed.us,
                                       left / static_cast<GpuMicros>(by_size.size() - i));
      owed[by_size[i]->number] += share;
      left -= share;
    }
    owed_ = std::move(owed);
  }
  std::map<std::uint32_t, GpuMicros> owed_;
  FleetTime charged_;
  std::vector<std::size_t> order_;
  RoundSlices slices_;
};

}  // namespace

std::unique_ptr<RoundPolicy> max_min_policy() { return std::make_unique<MaxMinPolicy>(); }

}  // namespace orrery
