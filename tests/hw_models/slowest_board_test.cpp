// SPDX-License-Identifier: Apache-2.0
// Holds the slowest of many boards to the statistics of extremes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "hw_models/boards.h"
#include "sim/base/random.h"

using namespace orrery;

namespace {

// Mean of the least of n normal variables over many draws, by Box and Muller.
double least_of(std::int64_t n, RandomStream& random) {
  double sum = 0;
  constexpr int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    double least = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
      const double one = radius * std::cos(2 * std::numbers::pi * random.uniform());
      least = k == 0 ? one : std::min(least, one);
    }
    sum += least;
  }
  return sum / draws;
}

}  // namespace

TEST_CASE("the slowest of n boards is the expected least of n draws") {
  RandomStream random(5, 1);
  for (const std::int64_t n : {2, 8, 64, 300}) {
    const double drawn = 1 + 0.01 * least_of(n, random);
    INFO(n << " boards, drawn " << drawn);
    CHECK(slowest_board(0.01, n) == Approx(drawn).margin(0.0006));
  }
  CHECK(slowest_board(0.01, 1) == 1);
  CHECK(slowest_board(0, 4096) == 1);
  double last = 1;
  for (std::int64_t n = 2; n < 200000; n *= 3) {
    const double next = slowest_board(0.015, n);
    CHECK(next < last);
    CHECK(next > 0.9);
    last = next;
  }
}
