// SPDX-License-Identifier: Apache-2.0
// Tests that engine time rounds to picoseconds and never wraps.
#include "sim/base/units/ticks.h"

#include <catch2/catch.hpp>

#include <limits>

#include "tests/base/error_text.h"

namespace orrery {
namespace {

TEST_CASE("seconds round to the nearest picosecond") {
  CHECK(to_ticks(seconds(1)).ps == 1000000000000);
  CHECK(to_ticks(Seconds(1.4e-12)).ps == 1);
  CHECK(to_ticks(Seconds(1.6e-12)).ps == 2);
  CHECK(to_ticks(Seconds(0)).ps == 0);
  CHECK(to_seconds(Ticks{1500}).si() == Approx(1.5e-9).epsilon(1e-15));
  CHECK(to_ticks(seconds(106 * 86400.0)).ps == 106LL * 86400 * 1000000000000);
}

TEST_CASE("time that does not fit is one clear error") {
  CHECK(error_text([] { to_ticks(seconds(107 * 86400.0)); }) ==
        "found a simulated time of 107 days; expected 0 to 106 days (64-bit picoseconds)");
  CHECK_THROWS_AS(to_ticks(Seconds(-1e-12)), Error);
  CHECK_THROWS_AS(to_ticks(Seconds(std::numeric_limits<double>::quiet_NaN())), Error);
  CHECK_THROWS_AS(to_ticks(Seconds(std::numeric_limits<double>::infinity())), Error);
}

TEST_CASE("sums and products do not wrap") {
  const Ticks month = to_ticks(seconds(30 * 86400.0));
  CHECK((month + month + month).ps == 3 * month.ps);
  CHECK((month * 3).ps == 3 * month.ps);
  CHECK((month - month).ps == 0);
  Ticks late = month * 3;
  CHECK_THROWS_AS(late + month, Error);
  CHECK_THROWS_AS(late += month, Error);
  CHECK_THROWS_AS(month * 4, Error);
  CHECK(late.ps == 3 * month.ps);
  CHECK(max(month, late) == late);
  CHECK(min(month, late) == month);
}

}  // namespace
}  // namespace orrery
