// SPDX-License-Identifier: Apache-2.0
// Knows what the ideal network promises: completions in order, at the collective's own time.
#include "sim/engine/network/ideal_network.h"

#include <catch2/catch.hpp>

#include "sim/engine/cluster.h"

namespace orrery {
namespace {

Collective all_reduce(double bytes) {
  return {.group = {.size = 8, .per_domain = 8, .domains = 1, .span = 8, .sharing = 1},
          .bytes = Bytes(bytes)};
}

TEST_CASE("collectives complete after their own time, in order", "[ideal_network]") {
  const Fabric fabric = load_fabric("nvlink4-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  IdealNetwork network(fabric, costs);
  CHECK_FALSE(network.next_completion());
  const Ticks start{1000};
  const auto large = network.start(all_reduce(1e9), start);
  const auto small = network.start(all_reduce(1e3), start);
  const auto again = network.start(all_reduce(1e3), start);
  CHECK(large != small);
  const auto first = network.next_completion();
  REQUIRE(first);
  CHECK(first->id == small);
  CHECK(first->time == start + to_ticks(network.price(all_reduce(1e3)).time));
  const auto second = network.next_completion();
  REQUIRE(second);
  CHECK(second->id == again);  // ties in order of start
  CHECK(second->time == first->time);
  const auto third = network.next_completion();
  REQUIRE(third);
  CHECK(third->id == large);
  CHECK(third->time > first->time);
  CHECK_FALSE(network.next_completion());
}

TEST_CASE("a price is that of the collective alone, and its reference stays", "[ideal_network]") {
  const Fabric fabric = load_fabric("nvlink4-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  IdealNetwork network(fabric, costs);
  const CollectiveTime& first = network.price(all_reduce(1e6));
  const Seconds time = first.time;
  for (int i = 1; i < 200; ++i) network.price(all_reduce(1e6 + i));
  CHECK(first.time == time);
  CHECK(&network.price(all_reduce(1e6)) == &first);
  CHECK(time == collective_time(all_reduce(1e6), fabric, costs).time);
}

}  // namespace
}  // namespace orrery
