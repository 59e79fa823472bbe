// SPDX-License-Identifier: Apache-2.0
// Knows goodput by playing out failures, saves, recoveries and repairs one after the other.
#pragma once

#include <cstdint>

#include "sim/outcome/months/goodput.h"

namespace orrery {

struct SimulationSize {
  int trials = 32;         // independent runs
  double failures = 2000;  // about so many in each; longer where corruption is noticed late
};

struct SimulatedGoodput {
  TimeShares shares{};  // means of the trials; sum to 1
  double effective = 0;
  double standard_error = 0;       // of `effective`
  TimeShares share_errors{};       // standard errors
  double units_out_error = 0;      // the same
  Ranged<double> trial_effective;  // median, 5% and 95% of the trials
  Seconds mean_time_to_failure;    // wall-clock time over failures that interrupted
  double units_out = 0;
  double failures = 0;  // simulated in all
};

// The same process as goodput() without its approximations: tiers interleave, units with slack keep
// count of their hosts, repairs wait for a crew. Same inputs, same errors. The result depends on
// `seed` and `size` only, not on `threads`; time grows with the failures, not with accelerators.
SimulatedGoodput simulate_goodput(const GoodputCase& input, std::uint64_t seed, int threads,
                                  const SimulationSize& size = {});

}  // namespace orrery
