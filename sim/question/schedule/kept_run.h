// SPDX-License-Identifier: Apache-2.0
// Knows what a run of a point leaves behind: for the answer, and for a folder that keeps results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/base/tasks/tasks.h"
#include "sim/outcome/fleet/fleet_measures.h"

namespace orrery {

struct KeptRun {
  FleetMeasures measures;
  std::optional<FleetRecord> record;  // of the first seed; a folder does not keep what jobs did
  std::optional<JobRecord> watched;   // of the job whose wait is told
  std::vector<JobRecord> trainings;   // of each training, of the first seed
};

// As task_value() with a function that makes it.
std::optional<KeptRun> kept_run(Tasks* tasks, std::uint64_t task,
                                const std::function<std::optional<KeptRun>()>& make);

}  // namespace orrery
