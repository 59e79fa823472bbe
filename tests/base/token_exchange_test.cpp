// SPDX-License-Identifier: Apache-2.0
// Tests how many places the experts of a token lie in, against tokens dealt out one by one.
#include "sim/base/token_exchange.h"

#include <catch2/catch.hpp>

#include <rapidcheck.h>
#include <set>

namespace orrery {
namespace {

// Distinct places over as many tokens as there are experts: after those all begins anew.
double dealt_out(std::int64_t experts, std::int64_t each, std::int64_t places) {
  const std::int64_t pool = each * places;
  std::int64_t next = 0;
  double sum = 0;
  for (std::int64_t token = 0; token < pool; ++token) {
    std::set<std::int64_t> reached;
    for (std::int64_t e = 0; e < experts; ++e) reached.insert(next++ % pool / each);
    sum += static_cast<double>(reached.size());
  }
  return sum / static_cast<double>(pool);
}

TEST_CASE("experts in turn lie on as many ranks as dealing them out gives") {
  CHECK(rc::check([] {
    const auto each = *rc::gen::inRange<std::int64_t>(1, 13);
    const auto places = *rc::gen::inRange<std::int64_t>(1, 17);
    const auto experts = *rc::gen::inRange<std::int64_t>(1, each * places + 1);
    const TokenExchange e{.experts = experts, .pool = each * places, .in_turn = true};
    RC_ASSERT(std::abs(places_reached(e, static_cast<double>(places)) -
                       dealt_out(experts, each, places)) < 1e-9);
  }));
}

TEST_CASE("neighbours lie on fewer ranks than experts anywhere, but on one at least") {
  // DeepSeek-V3 on 64 ranks in 8 domains: 8 aligned experts of 4 a rank are on 2 ranks of a domain.
  TokenExchange e{.experts = 8, .pool = 256, .in_turn = true};
  CHECK(places_reached(e, 64) == Approx(2));
  CHECK(places_reached(e, 8) == Approx(1));
  e.in_turn = false;
  CHECK(places_reached(e, 64) == Approx(64 * (1 - std::pow(63.0 / 64, 8))));
  e.in_turn = true;
  e.pool = 0;  // nothing is known of neighbours
  CHECK(places_reached(e, 8) == Approx(8 * (1 - std::pow(7.0 / 8, 8))));
}

}  // namespace
}  // namespace orrery
