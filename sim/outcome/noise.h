// SPDX-License-Identifier: Apache-2.0
// Says by how much reruns of one job differ, and which smaller differences mean nothing.
#pragma once

#include "sim/base/text/words.h"

namespace orrery {

// Published reruns of one job differ by this share of their speed in nine cases of ten:
// `run_to_run` of validation/model_error.json, in whole percent. A test holds the two together.
// It is not read from there, since the rows behind that file are scored with it.
inline constexpr double rerun_spread = 0.02;
// Published reruns of one layout come no closer to each other than that.
inline constexpr double least_rerun_spread = rerun_spread / 4;

// What advice gives up to be simpler: less than the closest reruns differ by, so that nobody who
// runs both layouts once can tell them apart.
inline constexpr double tie_tolerance = rerun_spread / 5;
// Below it two machines, or two points of a plan, are as good as each other, and a trap costs too
// little to be told. At half of the spread one run of each shows the same order four times of five.
inline constexpr double same_speed = rerun_spread / 2;
// Gains of single changes are told from here on. Both sides are simulated, so that nearly all
// noise is in both: a tenth of the spread is real, and less is nobody's reason to change.
inline constexpr double least_gain = rerun_spread / 10;
// Uncertain values that move a step by less change no order: they are not moved one by one.
inline constexpr double least_effect = rerun_spread / 20;

// "2%", "0.5 to 2%".
inline std::string rerun_spread_text() { return percent(rerun_spread, 0); }
inline std::string rerun_range_text() {
  return percent_figure(least_rerun_spread, 1) + " to " + rerun_spread_text();
}

}  // namespace orrery
