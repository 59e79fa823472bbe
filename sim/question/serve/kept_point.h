// SPDX-License-Identifier: Apache-2.0
// Knows a served point as a task's result.
#pragma once

#include <optional>

#include "sim/base/tasks/tasks.h"
#include "sim/question/serve/serve.h"

namespace orrery {

// What serving one point of several found: everything of a ServedPoint but what its settings say.
struct KeptPoint {
  ServicePrediction prediction;  // without its requests and their timeline
  ServedRanges ranges;
  std::optional<LoadResult> load;
  std::int64_t requests = 0;  // of its traffic: a load that is asked for lengthens it
};

// As task_value() with a function that makes it.
std::optional<KeptPoint> kept_point(Tasks* tasks, std::uint64_t task,
                                    const std::function<std::optional<KeptPoint>()>& make);

}  // namespace orrery
