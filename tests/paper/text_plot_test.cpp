// SPDX-License-Identifier: Apache-2.0
// Holds where points of a text plot lie, and that a histogram counts each value once.
#include "sim/paper/text_plot.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include <rapidcheck.h>

#include "sim/paper/tables.h"

namespace orrery {
namespace {

// Column and line of a mark.
std::pair<std::size_t, std::size_t> place_of(const std::vector<std::string>& lines, char mark) {
  for (std::size_t i = 1; i + 3 < lines.size(); ++i)
    if (const std::size_t at = lines[i].rfind(mark); at != std::string::npos)
      return {columns(lines[i].substr(0, at)), i};
  return {0, 0};
}

}  // namespace

TEST_CASE("text plot: more lies further right and further up") {
  for (const bool logarithmic : {false, true}) {
    const PlotAxis x{.label = "across", .logarithmic = logarithmic},
        y{.label = "up", .logarithmic = logarithmic};
    const auto lines = text_plot(x, y, {{1, 10, 'a'}, {20, 500, 'b'}, {100, 400, 'c'}}, 40, 10);
    REQUIRE(lines.size() == 14);
    CHECK(lines.front() == "up");
    const auto a = place_of(lines, 'a'), b = place_of(lines, 'b'), c = place_of(lines, 'c');
    CHECK(a.first < b.first);
    CHECK(b.first < c.first);
    CHECK(b.second <= c.second);
    CHECK(c.second < a.second);
    for (const std::string& line : lines) CHECK(columns(line) <= 52);
  }
  CHECK(text_plot({}, {}, {{0, 1, 'o'}}, 40, 10).empty());
}

TEST_CASE("law: a histogram counts each value once, between its edges") {
  CHECK(rc::check([](const std::vector<std::uint32_t>& drawn) {
    std::vector<double> values;
    for (const std::uint32_t v : drawn) values.push_back(1 + v % 1000);
    const Histogram h = histogram(values, 8);
    if (values.empty()) {
      RC_ASSERT(h.counts.empty());
      return;
    }
    RC_ASSERT(h.edges.size() == h.counts.size() + 1);
    RC_ASSERT(std::is_sorted(h.edges.begin(), h.edges.end()));
    std::size_t all = 0;
    for (std::size_t i = 0; i < h.counts.size(); ++i) {
      all += h.counts[i];
      const bool last = i + 1 == h.counts.size();
      const auto in = std::count_if(values.begin(), values.end(), [&](double v) {
        return v >= h.edges[i] * (1 - 1e-12) && (last || v < h.edges[i + 1]);
      });
      RC_ASSERT(static_cast<std::size_t>(in) >= h.counts[i]);
    }
    RC_ASSERT(all == values.size());
  }));
}

}  // namespace orrery
