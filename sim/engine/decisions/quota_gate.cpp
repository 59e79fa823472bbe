// SPDX-License-Identifier: Apache-2.0
// Counts what queues hold.
#include "sim/engine/decisions/quota_gate.h"

#include <algorithm>

namespace orrery {
namespace {

std::int64_t thousandths(const QueueQuota& quota) {
  return std::min(quota.gpus, INT64_MAX / whole_gpu) * whole_gpu;
}

}  // namespace

bool QuotaGate::admits(std::uint32_t number) const {
  const auto queue = static_cast<std::size_t>(state_.job(number).queue);
  return queue >= quotas_.size() || quotas_[queue].borrows ||
         milli_gpus(state_.job(number)) <= thousandths(quotas_[queue]);
}

void QuotaGate::submit(std::uint32_t number) {
  const auto queue = static_cast<std::size_t>(state_.job(number).queue);
  if (queue >= quotas_.size()) {
    state_.wait(number);
    return;
  }
  queues_[queue].held.push_back(number);
  release(queue);
}

void QuotaGate::release(std::size_t number) {
  Queue& queue = queues_[number];
  const QueueQuota& quota = quotas_[number];
  const auto fits = [&](std::uint32_t job) {
    return queue.own + milli_gpus(state_.job(job)) <= thousandths(quota);
  };
  std::erase_if(queue.borrowing, [&](std::uint32_t job) {
    if (!fits(job)) return false;
    queue.own += milli_gpus(state_.job(job));
    state_.end_loan(job);
    return true;
  });
  while (!queue.held.empty()) {
    const std::uint32_t job = queue.held.front();
    const bool own = fits(job);
    if (!own && !quota.borrows) return;
    queue.held.pop_front();
    if (own) {
      queue.own += milli_gpus(state_.job(job));
    } else {
      queue.borrowing.push_back(job);
      state_.lend(job);
    }
    state_.wait(job);
  }
}

void QuotaGate::settle() {
  for (const std::uint32_t job : state_.ended) {
    const auto number = static_cast<std::size_t>(state_.job(job).queue);
    if (number >= quotas_.size()) continue;
    Queue& queue = queues_[number];
    const auto loan = std::find(queue.borrowing.begin(), queue.borrowing.end(), job);
    if (loan != queue.borrowing.end())
      queue.borrowing.erase(loan);
    else
      queue.own -= milli_gpus(state_.job(job));
    state_.forget_loan(job);
  }
  if (!state_.ended.empty())
    for (std::size_t queue = 0; queue < queues_.size(); ++queue) release(queue);
}

}  // namespace orrery
