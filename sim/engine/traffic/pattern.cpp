// SPDX-License-Identifier: Apache-2.0
// Writes and reads patterns of traffic.
#include "sim/engine/traffic/pattern.h"

#include "sim/base/text/enum_names.h"

namespace orrery {
namespace {

constexpr auto pattern_text = enum_names<TrafficPattern>(
    {"ring", "crossing-ring", "all-to-all", "spread-all-to-all", "all-to-all-all"});

}  // namespace

std::string_view to_text(TrafficPattern pattern) { return pattern_text[pattern]; }

std::optional<TrafficPattern> traffic_pattern_from(std::string_view text) {
  return pattern_text.find(text);
}

std::vector<std::string> traffic_pattern_names() { return pattern_text.names(); }

}  // namespace orrery
