// SPDX-License-Identifier: Apache-2.0
// Says why a layout is as fast as it is, and what another one does differently.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/engine/step/result.h"

namespace orrery {

// Where the step goes on the mean stage; labels sum to the step (within a picosecond per label).
StageBreakdown mean_breakdown(const StepResult& result);

// Bubble of the stage with the least of it: what the schedule costs. What others have more, they
// wait for slower stages.
Ticks least_bubble(const StepResult& result);

// "The model's own compute takes 81.8% of the step (19.8 s of 24.2 s). The largest loss is ..."
// `schedule_bubble`: least_bubble() of the step; with it the sentence parts a bubble in two.
std::string explain_limit(const Layout& layout, const Job& job, const StageBreakdown& time,
                          std::optional<Ticks> schedule_bubble = {});

// "PP 8 in place of 16, vpp 4 in place of 8: 3.1% slower (+137 ms): +201 ms pipeline bubble, ..."
std::string explain_difference(const Layout& best, const StageBreakdown& best_time,
                               const Layout& other, const StageBreakdown& other_time);

// What stands in the way when no layout is left. `nearest_miss` is the reason of the memory
// rejection with the least shortage, or empty.
std::string explain_nothing(std::int64_t considered, const std::string& nearest_miss,
                            std::int64_t invalid, const std::string& invalid_example);

}  // namespace orrery
