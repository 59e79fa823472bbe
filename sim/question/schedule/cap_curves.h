// SPDX-License-Identifier: Apache-2.0
// Finds what power caps do to each kind of work of a shared cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/engine/power/cap_curve.h"
#include "sim/question/schedule/fleet_jobs.h"

namespace orrery {

// What a cap below their draw does to jobs of which only a length and a draw are known. none: they
// draw less and run as before, as those do that wait for hosts, networks or memory. clock: their
// steps take longer as those of kernels do that keep the tensor units busy (hw_models/power.h).
// proportional: in proportion to what the cap takes, as if no operation cost less at a lower clock.
enum class CapResponse : std::uint8_t { none, clock, proportional };
inline constexpr auto cap_response_text =
    enum_names<CapResponse>({"none", "clock", "proportional"});

// A kind of work under caps, from `least` to its device's limit.
struct WorkCaps {
  std::string name;  // "recorded", or the id of an entry
  Watts least, most;
  std::optional<CapCurve> curve;  // none: it is not capped
  // The most that its steps can take longer at the least cap: in proportion to what it takes.
  double most_slower = 1;
};

// Half of what the limit leaves above idle is the least cap: below, no clock was measured
// (sustained_energy). By ClusterJob::work. A training is stepped at nine caps on its own
// accelerators; caps act alike on other places. Served models are not capped: their promises are
// priced at full power.
// `clocks`: levels stand for clocks: level i leaves a half and i hundredths of the power above idle
// (budget_of_clock), to a training of what its device's limit leaves, to others of what they draw.
std::vector<WorkCaps> work_caps(const FleetJobs& jobs, const Cluster& cluster, CapResponse response,
                                bool clocks);

}  // namespace orrery
