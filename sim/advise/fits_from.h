// SPDX-License-Identifier: Apache-2.0
// Knows how many accelerators a job needs that fits on fewer in no layout.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/advise/advisor.h"
#include "sim/advise/stop_point.h"

namespace orrery {

// The least of the counts that plan looks at, above the question's own, on which some layout fits;
// nullopt: none up to plan_most_gpus, or as far as the wiring reaches, or as `stop` allows.
std::optional<std::int64_t> fits_from(const Question& question, const AdviseOptions& options,
                                      StopPoint& stop);

}  // namespace orrery
