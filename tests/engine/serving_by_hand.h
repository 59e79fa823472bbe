// SPDX-License-Identifier: Apache-2.0
// Makes small cases of serving that can be followed by hand.
#pragma once

#include <utility>
#include <vector>

#include "tests/engine/serving_case.h"

namespace orrery {

// A step takes 1 us, whatever it computes.
inline AffinePrices flat() {
  AffinePrices prices;
  prices.base = 1'000'000;
  prices.sequence = prices.context = prices.token = prices.past = 0;
  return prices;
}

inline ServingFleet fleet_of(const StepPrices& prices, SchedulerKind kind) {
  ServingFleet fleet;
  fleet.engines.policy.scheduler = kind;
  fleet.engines.policy.token_budget = 100;
  fleet.engines.policy.max_sequences = 8;
  fleet.engines.policy.block_tokens = 10;
  fleet.engines.shape.blocks = 100;
  fleet.engines.prices = &prices;
  return fleet;
}

inline RequestList list_of(std::vector<Request> requests) {
  RequestList list;
  list.requests = std::move(requests);
  return list;
}

}  // namespace orrery
