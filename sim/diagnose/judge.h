// SPDX-License-Identifier: Apache-2.0
// Knows which cause explains what a run shows, and with what probability: Bayes over simulated
// faults.
#pragma once

#include <string>
#include <vector>

#include "sim/diagnose/cause/causes.h"
#include "sim/diagnose/state/symptoms.h"

namespace orrery {

// How a reading lies to what a cause says.
struct Match {
  Reading reading;
  double expected = 0;  // under the cause
  double healthy = 0;   // without it
  double gain = 0;      // logarithm of the likelihood over that of a healthy run
};

// A cause with the strength and rank that fit best.
struct Finding {
  CauseKind kind = CauseKind::healthy;
  double probability = 0;  // over all its strengths and ranks
  int rank = -1;           // of causes that one rank has
  double strength = 0;
  double healthy_s = 0;  // mean step without it, moved by what kernels say of the prediction
  double faulty_s = 0;   // mean step with it
  double misfit = 0;     // mean square of what is left of the readings, in standard deviations
  std::vector<Match> matches;  // the most telling first
  // What counters say of the reason, and what to do against that; empty: nothing.
  std::string reason, reason_action;
};

// Most probable first; probabilities add up to 1. `step_noise`: standard deviation of the
// prediction's logarithm where nothing is known of kernels. `priors`: of every cause (priors_of()).
std::vector<Finding> judge(const RunState& healthy, double step_noise, const Seen& seen,
                           const LinkSteps& links, const std::vector<double>& priors);

}  // namespace orrery
