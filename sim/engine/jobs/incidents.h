// SPDX-License-Identifier: Apache-2.0
// Knows what is to happen to named hosts of a shared cluster, and what it came to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units/fleet_time.h"
#include "sim/base/units/units.h"

namespace orrery {

// Hosts go out at a given time, whoever is on them, and come back.
struct Incident {
  std::string name;  // "leaf group 12"
  FleetTime at;
  FleetTime length;
  std::vector<std::int32_t> hosts = {};  // ascending
  FleetTime latency = {};                // found so much later: jobs compute in vain until then
  bool drain = false;                    // planned: no job starts there from
  FleetTime announced = {};              // before `at`, and those that run then save before
  // A feed that loses one of its supplies carries so much less; then no host goes out.
  std::int32_t feed = -1;
  std::int64_t limit_left = 0;  // milliwatts
};

// Such as change nothing are left out of a run.
inline bool does_something(const Incident& one) {
  return one.length.us > 0 && (!one.hosts.empty() || one.feed >= 0);
}
inline bool does_something(const std::vector<Incident>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Incident& one) { return does_something(one); });
}

struct IncidentCount {
  bool happened = false;      // before the run ended
  std::int64_t gpus = 0;      // that it took out of use; others were out, or stood by
  std::int64_t stopped = 0;   // jobs
  std::int64_t largest = -1;  // the largest of them: its place in the list; -1: none
  GpuMicros lost = 0;         // of these: steps that do not count, in accelerators x time
  GpuMicros waited = 0;       // until they had places again, or the run ended
};

}  // namespace orrery
