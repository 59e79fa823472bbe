// SPDX-License-Identifier: Apache-2.0
// Draws random served models for the laws: traffic, policies and fleets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <rapidcheck.h>

#include "sim/engine/serving/fleet.h"
#include "tests/engine/serving_prices.h"
#include "workloads/traffic/traffic.h"

namespace orrery {

struct ServingCase {
  RequestList requests;
  ServingFleet fleet;
  std::shared_ptr<AffinePrices> prices = std::make_shared<AffinePrices>();
  std::shared_ptr<AffineTransfers> transfers = std::make_shared<AffineTransfers>();
};

// What a case is made of: one number of rapidcheck, so that a failure prints one number.
class CaseDraws {
 public:
  CaseDraws() : random_(*rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>()), 0) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool flag() { return random_.below(2) == 1; }

 private:
  RandomStream random_;
};

inline EnginePolicy random_policy(CaseDraws& d) {
  EnginePolicy policy;
  policy.scheduler = static_cast<SchedulerKind>(d.between(0, 3));
  policy.max_sequences = d.between(1, 12);
  policy.token_budget = policy.max_sequences * 5 + d.between(0, 200);
  policy.chunked_prefill = d.between(0, 3) > 0;
  policy.chunk = d.flag() ? d.between(20, 150) : 0;
  policy.long_prefill = d.flag() ? d.between(10, 80) : 0;
  policy.mixed_steps = d.flag();
  policy.block_tokens = std::int64_t{1} << d.between(0, 4);
  policy.prefix_cache = d.between(0, 3) > 0;
  policy.capacity = d.flag() ? CapacityPolicy::no_evict : CapacityPolicy::max_utilisation;
  policy.watermark = d.flag() ? 0 : 0.02;
  policy.rank_choice = d.flag() ? RankChoice::round_robin : RankChoice::least_requests;
  policy.front = Ticks{d.flag() ? 0 : 123'457};
  policy.front_token = Ticks{d.flag() ? 0 : 11};
  policy.new_tokens.retract_steps = d.between(0, 20);
  if (d.between(0, 3) == 0) policy.queue_limit = d.between(1, 6);
  if (d.between(0, 3) == 0) policy.priorities = {1, 0};
  if (d.flag()) {
    policy.tiers = {
        {"host", bytes(static_cast<double>(d.between(0, 4000))), bytes_per_second(1e9)},
        {"nvme", bytes(static_cast<double>(d.between(0, 4000))), bytes_per_second(1e8)}};
    if (d.flag()) policy.preemption = Preemption::swap;
  }
  if (d.flag()) policy.balance_steps = d.between(1, 9);
  if (d.flag()) {
    policy.batch_wait.steps = d.between(1, 9);
    policy.batch_wait.tokens = 0.1 * static_cast<double>(d.between(1, 9));
  }
  policy.new_tokens.known_ends = d.flag();
  return policy;
}

inline Traffic random_traffic(CaseDraws& d) {
  Traffic traffic;
  traffic.requests = d.between(1, 40);
  const Hertz rate(1e5 * static_cast<double>(d.between(1, 60)));
  switch (d.between(0, 3)) {
    case 0:
      traffic.arrivals = PoissonArrivals{rate};
      break;
    case 1:
      traffic.arrivals = GammaArrivals{rate, 3};
      break;
    case 2:
      traffic.arrivals = ClosedLoop{d.between(1, 9)};
      break;
    default:
      traffic.arrivals = OfflineArrivals{};
  }
  traffic.classes = {
      {"a", 1, UniformLength{1, d.between(1, 150)}, UniformLength{1, d.between(1, 60)}},
      {"b", 1, UniformLength{1, d.between(1, 60)}, FixedLength{1}}};
  if (!std::holds_alternative<ClosedLoop>(traffic.arrivals) && d.flag())
    traffic.sessions = Sessions{.turns = UniformLength{1, 4},
                                .added = UniformLength{1, 30},
                                .think = microseconds(static_cast<double>(d.between(0, 20))),
                                .unit_tokens = 16,
                                .shared = d.flag() ? 32 : 0};
  return traffic;
}

// Small pools, so that requests must make room for each other.
inline ServingGroup random_group(CaseDraws& d, const RequestList& requests,
                                 const StepPrices* prices) {
  ServingGroup group;
  group.policy = random_policy(d);
  if (requests.hash_tokens > 0) group.policy.block_tokens = std::int64_t{1} << d.between(0, 4);
  std::int64_t longest = 0;
  for (const Request& r : requests.requests)
    longest = std::max<std::int64_t>(longest, r.prompt + r.output);
  if (d.between(0, 3) == 0)
    group.shape.beside = {d.between(0, 2), d.between(0, 3), d.between(1, 60)};
  const std::int64_t least =
      longest / group.policy.block_tokens + 3 + group.shape.beside.of(longest);
  group.shape.blocks = d.flag() ? least * d.between(1, 3) : least * 40;
  if (d.between(0, 9) == 0) group.shape.blocks = std::max<std::int64_t>(least / 2, 1);
  group.shape.ranks = d.between(0, 3) == 0 ? d.between(2, 3) : 1;
  group.shape.lanes =
      d.between(0, 4) == 0 ? std::min<std::int64_t>(2, group.policy.max_sequences) : 1;
  group.shape.token = bytes(2);
  group.shape.plans_ahead = d.flag();
  group.shape.reads_after_launch = d.flag();
  if (d.between(0, 3) == 0) {
    group.shape.speculation = {.drafts = 2, .survival = {0.7, 0.4}};
    group.policy.token_budget = std::max(group.policy.token_budget, 3 * group.policy.max_sequences);
  }
  group.prices = prices;
  group.replicas = d.between(1, 3);
  group.router.kind = static_cast<RouterKind>(d.between(0, 7));
  return group;
}

inline ServingCase random_serving(CaseDraws& d) {
  ServingCase c;
  c.requests = make_requests(random_traffic(d), static_cast<std::uint64_t>(d.between(0, 1 << 20)));
  c.prices->launch = d.between(0, 1'000'000);
  c.prices->piece = d.flag() ? 0 : d.between(50, 900);
  c.prices->context = d.flag() ? d.between(0, 40) : d.between(0, 4000);
  if (d.between(0, 3) == 0) {  // all times on one grid, so that arrivals meet the ends of steps
    c.prices->piece = 0;
    c.prices->sequence = c.prices->context = c.prices->token = c.prices->past = 0;
    for (Request& r : c.requests.requests)
      r.arrival = Ticks{r.arrival.ps / c.prices->base * c.prices->base};
  }
  c.fleet.engines = random_group(d, c.requests, c.prices.get());
  if (d.between(0, 3) == 0) {
    c.fleet.decode = random_group(d, c.requests, c.prices.get());
    c.fleet.transfers = c.transfers.get();
    c.transfers->token = d.between(0, 1) * 2'000;
  }
  return c;
}

}  // namespace orrery
