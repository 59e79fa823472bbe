// SPDX-License-Identifier: Apache-2.0
// Draws breakdowns as one Poisson process, and repairs them in order.
#include "sim/engine/jobs/breakdowns.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::uint64_t breakdown_stream = 1;  // 0: of places

}  // namespace

Breakdowns::Breakdowns(const BreakdownPlan& plan, std::int64_t gpus, std::uint64_t seed)
    : plan_(plan), gpus_(gpus), random_(seed, breakdown_stream) {
  for (const BreakdownKind& kind : plan.kinds) rate_ += kind.rate.si();
  pop();
}

void Breakdowns::pop() {
  next_ = {.at = fleet_never};
  if (!(rate_ > 0)) return;
  now_ += random_.exponential(1 / rate_);
  double pick = random_.uniform() * rate_;
  std::size_t kind = 0;
  while (kind + 1 < plan_.kinds.size() && pick >= plan_.kinds[kind].rate.si())
    pick -= plan_.kinds[kind++].rate.si();
  const BreakdownKind& drawn = plan_.kinds[kind];
  next_.at = to_fleet_time(seconds(now_));
  next_.kind = kind;
  next_.gpu = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(gpus_)));
  next_.removed = random_.uniform() < drawn.removed;
  next_.repair = to_fleet_time(random_.exponential(1) * drawn.repair);
}

void RepairShop::bring(FleetTime now, FleetTime length, std::vector<std::int32_t> hosts) {
  if (crews_ > 0 && at_work_.size() >= static_cast<std::size_t>(crews_))
    waiting_.push_back({.done = length, .order = 0, .hosts = std::move(hosts)});
  else
    begin(now, length, std::move(hosts));
}

void RepairShop::begin(FleetTime now, FleetTime length, std::vector<std::int32_t> hosts) {
  at_work_.push({.done = now + length, .order = begun_++, .hosts = std::move(hosts)});
}

Repair RepairShop::take() {
  Repair out = at_work_.top();
  at_work_.pop();
  if (!waiting_.empty()) {
    begin(out.done, waiting_.front().done, std::move(waiting_.front().hosts));
    waiting_.pop_front();
  }
  return out;
}

HostSpan hosts_around(const SlotShape& shape, std::int32_t reach, std::int32_t host) {
  const std::int32_t first = host / std::max(1, reach) * std::max(1, reach);
  return {first, std::min(first + std::max(1, reach), shape.hosts)};
}

}  // namespace orrery
