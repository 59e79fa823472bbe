// SPDX-License-Identifier: Apache-2.0
// Runs jobs first that would finish latest against a fair share of the cluster, as Themis does.
#include <map>

#include "sim/engine/elastic/round_slices.h"

namespace orrery {
namespace {

// Mahajan et al., Themis, NSDI 2020: the finish-time fairness of a job is its completion, if it ran
// from now on, over its length alone times the jobs that there were in the mean since it came. The
// worst runs first, the oldest of equals; a decision holds for a slice, in which only free
// accelerators are given. Without Themis' auction: jobs say the truth here.
class FinishFairPolicy : public RoundPolicy {
 public:
  std::vector<std::int32_t> sizes(const RoundView& view) override {
    count(view);
    std::vector<double> unfairness;
    unfairness.reserve(view.jobs.size());
    for (const RoundJob& job : view.jobs) unfairness.push_back(unfairness_of(view, job));
    order_ =
        slice_order(view, slices_.next(view.question.slice_rounds),
                    [&](std::size_t a, std::size_t b) { return unfairness[a] > unfairness[b]; });
    return gangs_in_order(view, order_);
  }
  void decide(const RoundView& view, std::vector<Grants>& places) override {
    const std::vector<std::int32_t> gpus = sizes(view);
    place_emptiest(view, gpus, order_, places);
  }

 private:
  struct FairCompany {
    std::int64_t rounds = 0, jobs = 0;  // jobs: summed over the rounds
  };
  void count(const RoundView& view) {
    std::map<std::uint32_t, FairCompany> next;
    for (const RoundJob& job : view.jobs) {
      const auto before = company_.find(job.number);
      FairCompany& one = next[job.number];
      if (before != company_.end()) one = before->second;
      ++one.rounds;
      one.jobs += static_cast<std::int64_t>(view.jobs.size());
    }
    company_ = std::move(next);
  }
  double unfairness_of(const RoundView& view, const RoundJob& job) const {
    constexpr double ps_of_us = 1e6;
    const JobPace pace = view.packed_pace(job, job.asked->gpus);
    const FairCompany& company = company_.at(job.number);
    const double alone = JobPaces::time_left_ps(pace, elastic_work) *
                         static_cast<double>(company.jobs) / static_cast<double>(company.rounds);
    const double shared =
        static_cast<double>(job.age.us) * ps_of_us + JobPaces::time_left_ps(pace, job.left);
    return shared / alone;
  }
  std::map<std::uint32_t, FairCompany> company_;
  std::vector<std::size_t> order_;
  RoundSlices slices_;
};

}  // namespace

std::unique_ptr<RoundPolicy> finish_fair_policy() { return std::make_unique<FinishFairPolicy>(); }

}  // namespace orrery
