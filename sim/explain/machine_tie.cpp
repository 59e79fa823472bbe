// SPDX-License-Identifier: Apache-2.0
// Holds a ratio of speeds against the spread of boards.
#include "sim/explain/machine_tie.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/statistics.h"

namespace orrery {

std::string machine_tie(const Device& a, const Device& b, double ratio) {
  if (a.name == b.name || !(ratio > 0) || !a.board_spread.known() || !b.board_spread.known())
    return "";
  const double width = normal_95 * std::hypot(a.board_spread.get(), b.board_spread.get());
  if (std::abs(std::log(ratio)) > width) return "";
  std::string text = fmt::format(
      "{} and {} tie: they are {:.1f}% apart, and two boards of these kinds differ by up to "
      "{:.1f}%",
      a.name, b.name, 100 * std::abs(ratio - 1), 100 * width);
  const bool one_limit =
      a.power_limit.known() && b.power_limit.known() && a.power_limit.get() == b.power_limit.get();
  if (one_limit)
    text += fmt::format(
        ". Both run tensor work at {}, where the energy of an operation decides, which was "
        "measured "
        "on few boards of each",
        to_text(a.power_limit.get()));
  return text + ".";
}

}  // namespace orrery
