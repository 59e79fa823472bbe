// SPDX-License-Identifier: Apache-2.0
// Tests how far boards differ: equal shapes in several runs, and what few shapes do not tell.
#include "sim/calibrate/fit/run_spread.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

namespace orrery {
namespace {

// Rows of `shapes` shapes in each run, the run's times by its factor.
std::vector<OperatorRow> rows_of(const std::vector<double>& factors, int shapes) {
  std::vector<OperatorRow> rows;
  for (std::size_t run = 0; run < factors.size(); ++run)
    for (int i = 0; i < shapes; ++i) {
      OperatorRow row{
          .kernels = {}, .count = 1, .measured = Seconds((1 + i) * 1e-5 * factors[run])};
      row.shape = std::to_string(i);
      row.run = static_cast<int>(run);
      rows.push_back(row);
    }
  return rows;
}

TEST_CASE("the spread between runs is that of their medians") {
  const RunSpread two = spread_between_runs(rows_of({1.0, 1.02}, 20));
  CHECK(two.runs == 2);
  CHECK(two.spread == Approx(std::log(1.02) / std::sqrt(2.0)));
  const RunSpread three = spread_between_runs(rows_of({1.0, 1.0, 1.03}, 9));
  CHECK(three.runs == 3);
  CHECK(three.spread == Approx(std::log(1.03) / std::sqrt(3.0)));
}

TEST_CASE("one strange shape does not make a board slow") {
  std::vector<OperatorRow> rows = rows_of({1.0, 1.0}, 9);
  rows.back().measured = rows.back().measured * 3;
  CHECK(spread_between_runs(rows).spread == Approx(0).margin(1e-12));
}

TEST_CASE("one run, or few shapes in common, say nothing of boards") {
  CHECK(spread_between_runs(rows_of({1.0}, 50)).runs == 0);
  CHECK(spread_between_runs(rows_of({1.0, 1.1}, 4)).runs == 0);
  std::vector<OperatorRow> apart = rows_of({1.0, 1.1}, 20);
  for (OperatorRow& row : apart)
    if (row.run == 1) row.shape += " of another";
  CHECK(spread_between_runs(apart).runs == 0);
  // The same text, but another operand layout: another kernel.
  std::vector<OperatorRow> roles = rows_of({1.0, 1.1}, 20);
  for (OperatorRow& row : roles)
    if (row.run == 1) row.kernels[0].work.role = GemmRole::weight_gradient;
  CHECK(spread_between_runs(roles).runs == 0);
}

}  // namespace
}  // namespace orrery
