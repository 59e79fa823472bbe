// SPDX-License-Identifier: Apache-2.0
// Orders jobs by attained service in two queues, as Tiresias does (Gu et al., NSDI 2019).
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "sim/engine/elastic/round_policy.h"

namespace orrery {
namespace {

// Least attained service, discretised: jobs begin in the first queue, in order of submission, and
// go to the end of the second with so much GPU-time; those of the first queue come first. Nobody
// comes back to the first one, as in the evaluation of Pollux. Time on a place counts, restarts
// too.
class LasPolicy : public RoundPolicy {
 public:
  std::vector<std::int32_t> sizes(const RoundView& view) override {
    update(view);
    order_.clear();
    for (const std::vector<std::uint32_t>& queue : queues_)
      for (const std::uint32_t number : queue) order_.push_back(index_.at(number));
    std::vector<std::int32_t> gpus = gangs_in_order(view, order_);
    for (std::size_t i = 0; i < gpus.size(); ++i)
      service_.at(view.jobs[i].number).runs = gpus[i] > 0;
    return gpus;
  }
  void decide(const RoundView& view, std::vector<Grants>& places) override {
    const std::vector<std::int32_t> gpus = sizes(view);
    place_emptiest(view, gpus, order_, places);
  }

 private:
  struct LasService {
    FleetTime attained, looked_at;
    bool runs = false;
    std::size_t queue = 0;
  };
  void update(const RoundView& view) {
    index_.clear();
    for (std::size_t i = 0; i < view.jobs.size(); ++i) index_[view.jobs[i].number] = i;
    for (std::vector<std::uint32_t>& queue : queues_)
      std::erase_if(queue, [&](std::uint32_t number) { return !index_.contains(number); });
    std::erase_if(service_, [&](const auto& entry) { return !index_.contains(entry.first); });
    for (const RoundJob& job : view.jobs) count(view, job);
  }
  void count(const RoundView& view, const RoundJob& job) {
    const auto [entry, is_new] = service_.try_emplace(job.number);
    LasService& service = entry->second;
    if (is_new) queues_[0].push_back(job.number);
    if (service.runs) service.attained += view.now - service.looked_at;
    service.looked_at = view.now;
    const GpuMicros attained = static_cast<GpuMicros>(service.attained.us) * job.asked->gpus;
    if (service.queue == 1 || attained < view.question.first_queue) return;
    service.queue = 1;
    std::erase(queues_[0], job.number);
    queues_[1].push_back(job.number);
  }
  std::array<std::vector<std::uint32_t>, 2> queues_;
  std::vector<std::size_t> order_;
  std::map<std::uint32_t, LasService> service_;
  std::map<std::uint32_t, std::size_t> index_;  // in the view
};

}  // namespace

std::unique_ptr<RoundPolicy> las_policy() { return std::make_unique<LasPolicy>(); }

}  // namespace orrery
