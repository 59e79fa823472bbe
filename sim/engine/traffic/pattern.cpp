// SPDX-License-Identifier: Apache-2.0
// Knows how patterns of traffic are written.
#include "sim/engine/traffic/pattern.h"

#include <algorithm>
#include <array>

namespace orrery {
namespace {

constexpr std::array<std::string_view, 5> pattern_text = {"ring", "crossing-ring", "all-to-all",
                                                          "spread-all-to-all", "all-to-all-all"};

}  // namespace

std::string_view to_text(TrafficPattern pattern) {
  return pattern_text[static_cast<std::size_t>(pattern)];
}

std::optional<TrafficPattern> traffic_pattern_from(std::string_view text) {
  const auto found = std::find(pattern_text.begin(), pattern_text.end(), text);
  if (found == pattern_text.end()) return std::nullopt;
  return static_cast<TrafficPattern>(found - pattern_text.begin());
}

std::vector<std::string> traffic_pattern_names() {
  return {pattern_text.begin(), pattern_text.end()};
}

}  // namespace orrery
