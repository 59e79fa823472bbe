// SPDX-License-Identifier: Apache-2.0
// Knows how much boards differ: what equal shapes took in several runs.
#include "sim/calibrate/fit/run_spread.h"

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/statistics.h"

namespace orrery {

namespace {

constexpr std::size_t least_shapes = 5;

using Key = std::tuple<std::string, std::uint64_t, int, bool, int, int>;

// The text of a shape leaves out what a library chooses its kernel by.
Key key_of(const OperatorRow& row) {
  const Work& work = row.kernels[0].work;
  return {row.shape,
          row.family,
          static_cast<int>(work.role),
          work.accumulate_fp32,
          static_cast<int>(work.output),
          row.count};
}

}  // namespace

RunSpread spread_between_runs(std::span<const OperatorRow> rows) {
  std::map<Key, std::map<int, double>> shapes;  // logarithm of the time, by run
  for (const OperatorRow& row : rows) shapes[key_of(row)][row.run] = std::log(row.measured.si());
  std::map<int, std::vector<double>> offsets;
  for (const auto& [key, times] : shapes) {
    if (times.size() < 2) continue;
    double sum = 0;
    for (const auto& [run, time] : times) sum += time;
    const double middle = sum / static_cast<double>(times.size());
    for (const auto& [run, time] : times) offsets[run].push_back(time - middle);
  }
  RunSpread result;
  double squares = 0;
  for (const auto& [run, own] : offsets) {
    if (own.size() < least_shapes) continue;
    const double offset = median(own);
    squares += offset * offset;
    ++result.runs;
  }
  if (result.runs < 2) return {};
  result.spread = std::sqrt(squares / (result.runs - 1));
  return result;
}

}  // namespace orrery
