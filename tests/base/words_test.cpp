// SPDX-License-Identifier: Apache-2.0
// Tests shares, counts and lists in words at the places where their digits change.
#include "sim/base/text/words.h"

#include <catch2/catch.hpp>

#include <cstdint>

namespace orrery {
namespace {

TEST_CASE("shares are written in percent, with a sign where one is asked for") {
  CHECK(percent(0.123) == "12.3%");
  CHECK(percent(0.02, 0) == "2%");
  CHECK(percent_figure(0.12345, 2) == "12.35");
  CHECK(signed_percent(0.123) == "+12.3%");
  CHECK(signed_percent(-0.123, 0) == "-12%");
  CHECK(signed_percent(-0.0004) == "0.0%");
  CHECK(signed_percent(0.0004) == "0.0%");
  CHECK(signed_percent_figure(-0.0006) == "-0.1");
  CHECK(short_percent(0.098) == "9.8%");
  CHECK(short_percent(0.0996) == "10%");
  CHECK(short_percent_figure(0.284) == "28");
}

TEST_CASE("counts have their thousands apart and their noun in number") {
  CHECK(grouped(999) == "999");
  CHECK(grouped(std::int64_t{1'048'576}) == "1,048,576");
  CHECK(grouped(-1234.4) == "-1,234");
  CHECK(plural(1, "domain") == "1 domain");
  CHECK(plural(0, "domain") == "0 domains");
  CHECK(plural(1024, "domain") == "1,024 domains");
}

TEST_CASE("a list ends with and") {
  CHECK(enumeration({}).empty());
  CHECK(enumeration({"2"}) == "2");
  CHECK(enumeration({"2", "3"}) == "2 and 3");
  CHECK(enumeration({"2", "3", "5"}) == "2, 3 and 5");
}

}  // namespace
}  // namespace orrery
