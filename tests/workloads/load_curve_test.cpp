// SPDX-License-Identifier: Apache-2.0
// Tests rates of days and weeks that repeat.
#include <catch2/catch.hpp>

#include "workloads/traffic/load_curve.h"

namespace orrery {
namespace {

constexpr FleetTime at(double hours) {
  return {static_cast<std::int64_t>(hours * 3600) * INT64_C(1'000'000)};
}

LoadCurve day() {
  return LoadCurve({{.length = seconds(8 * 3600), .rate = Hertz(2)},
                    {.length = seconds(10 * 3600), .rate = Hertz(12)},
                    {.length = seconds(6 * 3600), .rate = Hertz(2)}});
}

}  // namespace

TEST_CASE("a day's rates repeat, and equal ones are one span", "[service]") {
  const LoadCurve curve = day();
  CHECK(curve.peak() == 12);
  const std::vector<LoadSpan> spans = curve.spans(at(1), at(49));
  REQUIRE(spans.size() == 5);
  const double until[] = {8, 18, 32, 42, 49};
  FleetTime from = at(1);
  double requests = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    CHECK(spans[i].from == from);
    CHECK(spans[i].to == at(until[i]));
    CHECK(spans[i].rate == (i % 2 == 0 ? 2 : 12));
    from = spans[i].to;
    requests += spans[i].rate * to_seconds(spans[i].to - spans[i].from).si();
  }
  CHECK(requests == Approx(3600 * 2 * (14 * 2 + 10 * 12)));
  CHECK(curve.most(at(1), at(8)) == 2);
  CHECK(curve.most(at(1), at(8) + FleetTime{1}) == 12);
  CHECK(curve.most(at(18), at(32)) == 2);
  CHECK(curve.most(at(18), at(42)) == 12);
  CHECK(curve.most(at(2), at(2) + FleetTime{1}) == 2);
}

TEST_CASE("a week has its peak in the hour of most requests", "[service]") {
  std::array<double, 24> hours{};
  hours.fill(1);
  hours[14] = 4;
  std::array<double, 7> days{};
  days.fill(10);
  days[5] = days[6] = 5;
  const LoadCurve curve = LoadCurve::of_week(40, hours, days);
  CHECK(curve.peak() == Approx(40));
  CHECK(curve.most(at(14), at(15)) == Approx(40));
  CHECK(curve.most(at(24 + 3), at(24 + 4)) == Approx(10));
  CHECK(curve.most(at(6 * 24 + 14), at(6 * 24 + 15)) == Approx(20));
  CHECK(curve.most(at(7 * 24 + 14), at(7 * 24 + 15)) == Approx(40));
  CHECK(curve.spans(at(0), at(7 * 24)).size() == 11 + 5);
}

}  // namespace orrery
