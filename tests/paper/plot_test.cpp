// SPDX-License-Identifier: Apache-2.0
// Tests axes and marks of plots.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "sim/base/random.h"
#include "sim/paper/plot.h"
#include "tests/paper/count_text.h"

namespace orrery {

TEST_CASE("axes have a few ticks inside their range, rising, whatever it is", "[plot]") {
  RandomStream random(1, 0);
  for (int i = 0; i < 500; ++i) {
    PlotAxis axis{.logarithmic = i % 2 == 0, .bytes = i % 4 == 0};
    const double low = std::exp(random.normal(3, 4)), high = low * (1.05 + 1e4 * random.uniform());
    const auto ticks = axis_ticks(axis, low, high);
    INFO(low << " to " << high);
    CHECK(ticks.size() <= 13);
    for (std::size_t t = 0; t < ticks.size(); ++t) {
      CHECK(ticks[t] >= low * (1 - 1e-6));
      CHECK(ticks[t] <= high * (1 + 1e-6));
      if (t > 0) CHECK(ticks[t] > ticks[t - 1]);
      CHECK_FALSE(tick_label(axis, ticks[t]).empty());
    }
    if (high > 4.1 * low) CHECK(ticks.size() >= 2);
  }
  CHECK(tick_label({.bytes = true}, 65536) == "64 KiB");
  CHECK(tick_label({}, 0.3) == "0.3");
}

TEST_CASE("an axis need not begin at 0, and a narrow logarithmic one has ticks", "[plot]") {
  Plot plot{.title = "t",
            .x = {.label = "MHz", .tight = true},
            .y = {.label = "us", .logarithmic = true}};
  plot.series.push_back({.points = {{1400, 4000}, {1900, 4100}}});
  const std::string svg = plots_svg("heading", {plot}, 1);
  CHECK(count(svg, ">1400<") == 1);
  CHECK(count(svg, ">1000<") == 0);
  CHECK(count(svg, ">5000<") == 1);
}

TEST_CASE("points that an axis cannot show are left out, others are drawn", "[plot]") {
  Plot plot{.title = "a < b", .x = {.label = "x", .logarithmic = true}, .y = {.label = "y"}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  plot.series.push_back({.label = "measured", .points = {{1, 2}, {0, 3}, {10, nan}, {100, 4}}});
  plot.series.push_back({.mark = Mark::hollow, .points = {{10, 3}}});
  plot.series.push_back({.mark = Mark::line, .points = {{1, 2}, {10, nan}, {20, 3}, {100, 4}}});
  CHECK_FALSE(plot.empty());
  const std::string svg = plots_svg("heading", {plot}, 2);
  // Three points and the one of the legend.
  CHECK(count(svg, "<circle") == 4);
  CHECK(count(svg, "nan") == 0);
  CHECK(count(svg, "a &lt; b") == 1);
  CHECK(Plot{.series = {{.points = {{nan, 1}}}}}.empty());
}

}  // namespace orrery
