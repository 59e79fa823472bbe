// SPDX-License-Identifier: Apache-2.0
// Knows where the steps of a profile begin and end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/observe/profile/intervals.h"

namespace orrery::observe {

struct StepWindow {
  std::int64_t number = 0;
  bool whole = true;                  // false: it ends with its last kernel
  Interval device;                    // where the GPU works on it
  Interval host;                      // as annotated; empty where steps are inferred
  std::optional<Nanoseconds> period;  // from the host's begin to the next one's
};

struct StepWindows {
  StepSource source = StepSource::whole;
  std::vector<StepWindow> steps;
  std::vector<std::string> notes;
};

// Events of one device, sorted by their begin; launches sorted by correlation. A step of
// annotations begins on the GPU with the first work that the host launched within it; where no
// launch is known its bounds are the host's.
StepWindows find_steps(const Timeline& timeline);

}  // namespace orrery::observe
