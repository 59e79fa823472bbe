// SPDX-License-Identifier: Apache-2.0
// Checks when engines let requests start: by rank, by batch, by the ends that they know.
#include <catch2/catch.hpp>
#include <cstdint>

#include "sim/engine/serving/fleet.h"
#include "tests/engine/serving_by_hand.h"

namespace orrery {

TEST_CASE("serving: a prompt that comes to a full rank as prompts are let in waits for a plan") {
  // A rank's first request ends in the step that lets prompts in; the leap's first step held them.
  const AffinePrices prices = flat();
  const auto at = [](std::int64_t us) { return Ticks{us * 1'000'000}; };
  const RequestList list =
      list_of({{.prompt = 10, .output = 30},
               {.prompt = 10, .output = 60},
               {.arrival = at(20) + Ticks{500'000}, .prompt = 10, .output = 2}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::trtllm);
  fleet.engines.shape.ranks = 2;
  fleet.engines.shape.plans_ahead = true;
  fleet.engines.policy.max_sequences = 1;
  fleet.engines.policy.balance_steps = 10;
  for (const std::int64_t output : {29, 30, 31}) {
    RequestList one = list;
    one.requests[0].output = static_cast<std::int32_t>(output);
    const ServiceTimeline leaps = serve(one, fleet, {}),
                          steps = serve(one, fleet, {.leaps = false});
    CHECK(leaps.requests[2].scheduled == steps.requests[2].scheduled);
    CHECK(leaps.requests[2].first == steps.requests[2].first);
  }
}

TEST_CASE("serving: TensorRT-LLM's prompts wait for more of them, as long as they may") {
  const AffinePrices prices = flat();
  const auto at = [](std::int64_t us) { return Ticks{us * 1'000'000}; };
  RequestList list = list_of({{.prompt = 10, .output = 60},
                              {.arrival = at(10), .prompt = 10, .output = 2},
                              {.arrival = at(15), .prompt = 30, .output = 2}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::trtllm);
  EnginePolicy& policy = fleet.engines.policy;
  policy.batch_wait.steps = 20;
  policy.batch_wait.tokens = 0.41;  // of 100: the two prompts and the row that decodes
  const ServiceTimeline both = serve(list, fleet, {});
  CHECK(both.requests[1].scheduled == at(15));
  CHECK(both.requests[2].scheduled == at(15));
  policy.batch_wait.tokens = 0.5;
  CHECK(serve(list, fleet, {}).requests[1].scheduled == at(30));
  CHECK(serve(list, fleet, {}).requests[2].scheduled == at(30));
  policy.capacity = CapacityPolicy::max_utilisation;
  CHECK(serve(list, fleet, {}).requests[1].scheduled == at(30));
  // Where nothing decodes, none waits; nor where a rank has others beside it.
  list.requests[0].output = 1;
  CHECK(serve(list, fleet, {}).requests[1].scheduled == at(10));
  list.requests[0].output = 60;
  fleet.engines.shape.ranks = 2;
  CHECK(serve(list, fleet, {}).requests[1].scheduled == at(10));
  fleet.engines.shape.ranks = 1;
  policy.batch_wait.steps = 0;
  CHECK(serve(list, fleet, {}).requests[1].scheduled == at(10));
}

TEST_CASE("serving: SGLang starts what finds room until its end where ends are known") {
  const AffinePrices prices = flat();
  const RequestList list = list_of({{.prompt = 20, .output = 40}, {.prompt = 20, .output = 40}});
  ServingFleet fleet = fleet_of(prices, SchedulerKind::sglang);
  EnginePolicy& policy = fleet.engines.policy;
  policy.block_tokens = 1;
  policy.prefix_cache = false;
  policy.new_tokens.initial = policy.new_tokens.lowest = 0;  // nothing else keeps the second out
  policy.chunk = 20;
  fleet.engines.shape.blocks = 120;  // one a request beside what both hold when the first ends
  CHECK(serve(list, fleet, {}).requests[1].scheduled.ps == 1'000'000);
  policy.new_tokens.known_ends = true;
  const ServiceTimeline apart = serve(list, fleet, {});
  CHECK(apart.requests[1].scheduled == apart.requests[0].last);
  fleet.engines.shape.blocks = 121;
  CHECK(serve(list, fleet, {}).requests[1].scheduled.ps == 1'000'000);
  // It counts on what ends first: with what the short one gives back the long one comes to its end.
  const RequestList unlike = list_of({{.prompt = 40, .output = 2}, {.prompt = 20, .output = 60}});
  fleet.engines.shape.blocks = 90;
  CHECK(serve(unlike, fleet, {}).requests[1].scheduled.ps == 2'000'000);
  // Its prefix cache keeps to the other rule.
  fleet.engines.shape.blocks = 120;
  policy.prefix_cache = true;
  CHECK(serve(list, fleet, {}).requests[1].scheduled.ps == 1'000'000);
}

}  // namespace orrery
