// SPDX-License-Identifier: Apache-2.0
// Keeps waiting jobs in order, with the least limit above those of one size.
#include "sim/engine/jobs/waiting_list.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {

namespace {

std::int64_t queue_of(const WaitingJob& job) {
  constexpr std::int64_t most_levels = 16, most_parts = 1024;
  return (job.gpus * most_parts + job.milli) * most_levels + job.within - no_level;
}

}  // namespace

bool is_before(const WaitingJob& a, const WaitingJob& b) {
  if (a.key != b.key) return a.key < b.key;
  return a.turn != b.turn ? a.turn < b.turn : a.job < b.job;
}

void SizeQueue::insert(const WaitingJob& job) {
  constexpr std::size_t few = 64;
  if (live_ == 0) {
    entries_.clear();
    head_ = 0;
    leaves_ = 0;
  } else if (entries_.size() > 2 * live_ + few) {
    compact();
  }
  ++live_;
  if (entries_.empty() || is_before(entries_.back(), job)) {
    entries_.push_back(job);
    if (leaves_ == 0) return;
    if (entries_.size() > leaves_)
      leaves_ = 0;
    else
      renew(entries_.size() - 1);
    return;
  }
  // Those that left keep their key, so that the order holds.
  const auto live = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
  entries_.insert(std::upper_bound(live, entries_.end(), job, is_before), job);
  leaves_ = 0;
}

void SizeQueue::erase(std::size_t place) {
  entries_[place].gpus = 0;
  --live_;
  if (leaves_ != 0) renew(place);
  while (head_ < entries_.size() && entries_[head_].gpus == 0) ++head_;
}

void SizeQueue::compact() {
  std::size_t kept = 0;
  for (std::size_t i = head_; i < entries_.size(); ++i)
    if (entries_[i].gpus != 0) entries_[kept++] = entries_[i];
  entries_.resize(kept);
  head_ = 0;
  leaves_ = 0;
}

void SizeQueue::build() {
  leaves_ = 64;
  while (leaves_ < 2 * entries_.size()) leaves_ *= 2;
  least_.assign(2 * leaves_, fleet_never);
  for (std::size_t i = head_; i < entries_.size(); ++i)
    if (entries_[i].gpus != 0) least_[leaves_ + i] = entries_[i].limit;
  for (std::size_t n = leaves_; n-- > 1;) least_[n] = std::min(least_[2 * n], least_[2 * n + 1]);
}

void SizeQueue::renew(std::size_t place) {
  const WaitingJob& job = entries_[place];
  std::size_t n = leaves_ + place;
  least_[n] = job.gpus == 0 ? fleet_never : job.limit;
  for (n /= 2; n >= 1; n /= 2) least_[n] = std::min(least_[2 * n], least_[2 * n + 1]);
}

std::size_t SizeQueue::next(std::size_t from) const {
  std::size_t place = std::max(from, head_);
  while (place < entries_.size() && entries_[place].gpus == 0) ++place;
  return place < entries_.size() ? place : none;
}

std::size_t SizeQueue::after(const WaitingJob& job) const {
  const auto live = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
  return static_cast<std::size_t>(std::upper_bound(live, entries_.end(), job, is_before) -
                                  entries_.begin());
}

std::size_t SizeQueue::next_within(std::size_t from, FleetTime window) {
  if (leaves_ == 0) build();
  if (from >= leaves_) return none;
  // From a leaf on to the right, down where a limit is small enough.
  std::size_t n = leaves_ + from;
  while (true) {
    if (least_[n] <= window) {
      if (n >= leaves_) return n - leaves_;
      n *= 2;
      continue;
    }
    while ((n & 1) != 0) n /= 2;  // a right child's parent is done, too
    if (n == 0) return none;
    ++n;
  }
}

void WaitingList::insert(const WaitingJob& job) {
  const auto [at, is_new] =
      numbers_.try_emplace(queue_of(job), static_cast<std::uint32_t>(queues_.size()));
  if (is_new) queues_.emplace_back(job.gpus, job.milli);
  SizeQueue& queue = queues_[at->second];
  if (queue.empty()) active_.push_back(at->second);
  if (live_ == 0 || is_before(job, head())) first_ = at->second;
  queue.insert(job);
  most_ = std::max(most_, ++live_);
}

void WaitingList::erase(std::uint32_t number, std::size_t place) {
  SizeQueue& queue = queues_[number];
  const bool was_head = number == first_ && place == queue.head();
  queue.erase(place);
  --live_;
  if (queue.empty()) active_.erase(std::find(active_.begin(), active_.end(), number));
  if (was_head) find_first();
}

void WaitingList::take(const WaitingJob& job) {
  const std::uint32_t number = numbers_.at(queue_of(job));
  const std::size_t place = queues_[number].after(job) - 1;
  CHECK_THAT(queues_[number].at(place).job == job.job, "a job that waits is taken out");
  erase(number, place);
}

void WaitingList::find_first() {
  if (active_.empty()) return;
  first_ = active_.front();
  for (const std::uint32_t number : active_) {
    const SizeQueue& queue = queues_[number];
    if (is_before(queue.at(queue.head()), head())) first_ = number;
  }
}

}  // namespace orrery
