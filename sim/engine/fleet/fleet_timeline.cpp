// SPDX-License-Identifier: Apache-2.0
// Spreads a stretch of time over the parts that it touches.
#include "sim/engine/fleet/fleet_timeline.h"

#include <algorithm>

namespace orrery {
void FleetTimelineMaker::add(FleetTime from, FleetTime passed, const TimelinePart& state) {
  const FleetTime end = from + passed;
  std::vector<TimelinePart>& parts = timeline_.parts;
  while (timeline_.length.us * static_cast<GpuMicros>(most_parts) < end.us) {
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
      parts[i / 2] = parts[i];
      parts[i / 2].add(parts[i + 1]);
    }
    if (parts.size() % 2 == 1) parts[parts.size() / 2] = parts.back();
    parts.resize((parts.size() + 1) / 2);
    timeline_.length.us *= 2;
  }
  const std::int64_t length = timeline_.length.us;
  // Most pieces lie in the last part.
  const auto last = static_cast<std::int64_t>(parts.size()) - 1;
  if (last >= 0 && from.us >= last * length && end.us <= (last + 1) * length) {
    parts.back().add(state, passed.us);
    timeline_.end = end;
    return;
  }
  for (std::int64_t at = from.us; at < end.us;) {
    const std::int64_t part = at / length, next = std::min(end.us, (part + 1) * length);
    if (parts.size() <= static_cast<std::size_t>(part))
      parts.resize(static_cast<std::size_t>(part) + 1);
    parts[static_cast<std::size_t>(part)].add(state, next - at);
    at = next;
  }
  timeline_.end = end;
}

}  // namespace orrery
