// SPDX-License-Identifier: Apache-2.0
// Finds the start that the head can be promised, and who leaves it that.
#include "sim/engine/decisions/easy_pass.h"

#include <algorithm>

#include "sim/engine/fleet/stop_order.h"

namespace orrery {

void EasyPass::promise() {
  const WaitingJob& head = state_.waiting().head();
  if (state_.is_pool()) {
    const auto reach = state_.promised().reach(head.gpus - state_.slots().free());
    at_ = reach.at;
    spare_ = state_.slots().free() + reach.gpus - head.gpus;
  } else if (head_ != head.job) {
    future_.emplace(state_);
    at_ = first_place(state_, head.job, *future_);
  }
  head_ = head.job;
  FleetTime& told = state_.records[head.job].promise;
  told = std::min(told, at_);
}

bool EasyPass::head_has_place() const { return future_->fits(state_.waiting().head().job); }

// What holds for one job holds for all of its size until another starts.
void EasyPass::decide(FleetTime now) {
  if (state_.waiting().size() < 2 || state_.is_full()) return;
  FleetTime window = fleet_never;
  if (any_) forget();
  if (any_ && !waits_for_saves(state_, state_.waiting().head().job)) {
    head_ = state_.waiting().head().job;
  } else {
    // Somebody took longer than was expected.
    if (head_ == state_.waiting().head().job && at_ <= now) forget();
    promise();
    window = at_ - now;
  }
  sizes_.clear();
  for (const std::uint32_t number : state_.waiting().active())
    if (may_fit(state_.waiting().queue(number))) sizes_.push_back({number});
  while (!state_.is_full()) {
    Candidate* first = nullptr;
    for (Candidate& one : sizes_) {
      look_for(one, window);
      if (one.over || one.place == SizeQueue::none) continue;
      if (first == nullptr || is_before(job_of(one), job_of(*first))) first = &one;
    }
    if (first == nullptr) return;
    try_one(*first, now, window);
  }
}

void EasyPass::look_for(Candidate& one, FleetTime window) {
  SizeQueue& queue = state_.waiting().queue(one.queue);
  one.over = one.over || queue.empty() || !may_fit(queue);
  if (one.over) return;
  if (one.refused != UINT64_MAX && one.refused != started_) {
    // Those before the one that started had their turn.
    one.from = std::max(one.from, queue.after(last_));
    one.refused = UINT64_MAX;
  }
  const bool short_alone = one.refused == started_;
  const auto next = [&] {
    return short_alone ? queue.next_within(one.from, window) : queue.next(one.from);
  };
  one.place = next();
  if (one.place != SizeQueue::none && queue.at(one.place).job == head_) {
    one.from = one.place + 1;
    one.place = next();
  }
  // Long ones that are refused now may be taken once another has started.
  one.over = one.place == SizeQueue::none && !short_alone;
}

void EasyPass::try_one(Candidate& one, FleetTime now, FleetTime window) {
  const WaitingJob job = job_of(one);
  const std::size_t place = one.place;
  one.from = place + 1;
  if (!state_.find(job.job, found_)) {
    one.over = true;
  } else if (!leaves_the_head(job, window)) {
    one.refused = started_;
  } else {
    state_.waiting().erase(one.queue, place);
    state_.start(job.job, now, found_);
    last_ = job;
    ++started_;
  }
}

bool EasyPass::leaves_the_head(const WaitingJob& job, FleetTime window) {
  if (job.limit <= window) return true;
  if (state_.is_pool()) {
    if (job.gpus > spare_) return false;
    spare_ -= job.gpus;
    return true;
  }
  future_->take(job.job, found_);
  if (head_has_place()) return true;
  future_->give(job.job, found_);
  return false;
}

}  // namespace orrery
