// SPDX-License-Identifier: Apache-2.0
// Draws breakdowns as one Poisson process, and repairs them in order.
#include "sim/engine/jobs/breakdowns.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::uint64_t breakdown_stream = 1;  // 0: of places; from 2 on: of jobs
constexpr std::uint64_t lemon_stream = UINT64_MAX;

}  // namespace

Breakdowns::Breakdowns(const BreakdownPlan& plan, const SlotShape& shape, std::uint64_t seed)
    : plan_(plan),
      shape_(shape),
      lemon_random_(seed, lemon_stream),
      random_(seed, breakdown_stream) {
  for (const BreakdownKind& kind : plan.kinds) rate_ += kind.rate.si();
  const std::int32_t count = std::min(plan.lemons.hosts, shape.hosts - 1);
  while (static_cast<std::int32_t>(lemons_.size()) < count)
    lemons_.insert(
        static_cast<std::int32_t>(lemon_random_.below(static_cast<std::uint64_t>(shape.hosts))));
  pop();
}

// Of what breaks a single host: a lemon, or one of the others.
void Breakdowns::draw_host() {
  const auto below = [&](std::size_t n) { return lemon_random_.below(n); };
  const auto usual = static_cast<double>(shape_.hosts) - static_cast<double>(lemons_.size());
  const double share = plan_.lemons.share, each = (1 - share) / usual;
  auto host = static_cast<std::int32_t>(next_.gpu / shape_.gpus_per_host);
  next_.of_lemon = lemon_random_.uniform() < share;
  next_.which = lemon_random_.uniform();
  if (next_.of_lemon) {
    host = *std::next(lemons_.begin(), static_cast<std::ptrdiff_t>(below(lemons_.size())));
    next_.of_usual = lemon_random_.uniform() * share < each * static_cast<double>(lemons_.size());
  } else {
    while (lemons_.contains(host))
      host = static_cast<std::int32_t>(below(static_cast<std::size_t>(shape_.hosts)));
  }
  next_.gpu = std::int64_t{host} * shape_.gpus_per_host +
              next_.gpu % shape_.gpus_per_host % shape_.gpus_of(host);
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
  next_.gpu = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(shape_.gpus())));
  next_.removed = random_.uniform() < drawn.removed;
  next_.repair = to_fleet_time(random_.exponential(1) * drawn.repair);
  if (!lemons_.empty() && drawn.reach == 1) draw_host();
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

std::vector<std::int32_t> hosts_around(const SlotShape& shape, std::int32_t reach,
                                       std::int32_t host) {
  const std::int32_t each = std::max(1, reach), first = host / each * each;
  std::vector<std::int32_t> hosts;
  for (std::int32_t h = first; h < std::min(first + each, shape.hosts); ++h) hosts.push_back(h);
  return hosts;
}

}  // namespace orrery
