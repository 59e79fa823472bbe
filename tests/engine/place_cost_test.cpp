// SPDX-License-Identifier: Apache-2.0
// Tests what recorded jobs lose on scattered places.
#include <catch2/catch.hpp>

#include "sim/engine/prices/place_prices.h"

namespace orrery {
namespace {

SlotShape leaves_and_pods() {
  SlotShape shape{.hosts = 64, .gpus_per_host = 8, .last_host_gpus = 8};
  shape.levels = {{"leaf group", 4}, {"pod", 16}};
  return shape;
}

TEST_CASE("places lie under no more levels than they need, or under more", "[placement]") {
  const SlotShape shape = leaves_and_pods();
  CHECK(levels_beyond_need({{5, 1, 3}}, shape) == 0);
  CHECK(levels_beyond_need({{4, 4, 8}}, shape) == 0);
  CHECK(levels_beyond_need({{3, 2, 8}}, shape) == 1);              // two leaf groups
  CHECK(levels_beyond_need({{3, 1, 8}, {17, 1, 8}}, shape) == 2);  // two pods
  CHECK(levels_beyond_need({{2, 5, 8}}, shape) == 0);              // five hosts need two groups
  CHECK(levels_beyond_need({{14, 5, 8}}, shape) == 1);             // of one pod
  CHECK(levels_beyond_need({{2, 20, 8}}, shape) == 0);
}

TEST_CASE("recorded jobs take longer on scattered places, by level", "[placement]") {
  StepPlacePrices prices({}, leaves_and_pods(), 1.25);
  CHECK(prices.price(0, {{4, 4, 8}}).step_ps == 1'000'000);
  CHECK(prices.price(0, {{3, 2, 8}}).step_ps == 1'250'000);
  CHECK(prices.price(0, {{3, 1, 8}, {17, 1, 8}}).step_ps == 1'562'500);
  CHECK(prices.price(0, {{3, 2, 8}}).trunks.empty());
}

}  // namespace
}  // namespace orrery
