// SPDX-License-Identifier: Apache-2.0
// Knows what can be done against losses to failures, and what each would give back.
#pragma once

#include <string>
#include <vector>

#include "sim/outcome/months/job.h"

namespace orrery {

struct Remedy {
  std::string name;                // "hot spares", "asynchronous checkpoints", ..
  std::string action;              // what is changed, with its numbers; one clause
  std::string reason;              // why it does not apply; empty: it does
  double effective = 0, gain = 0;  // with it, and what it adds; both shares of time
  double days_saved = 0;  // 0 where the case has no tokens; infinite: the run would never end
  GoodputCase changed;    // the case with the remedy
};

// What remedies make of a case: values of the profile that the case was made of.
struct RemedyOptions {
  double spare_probability = usual_spare_probability;
  Ranged<Seconds> elastic_recovery;  // of the others, detection included
  Ranged<double> restart_factor;     // of detection, diagnosis, start and warm-up
  // Until wrong numbers are noticed, with checks in the steps; what the checks cost is not counted.
  Ranged<Seconds> corruption_latency;
  std::string applied;  // that the case holds already, by name: not applied twice
};
RemedyOptions remedy_options(const ReliabilityProfile& profile);

// Each lever alone on this case, then "all of them" (the others of them, where one is applied), in
// a fixed order. Gains of single levers do not add up. A lever that does not apply, or is in use
// already, says so in `reason` and changes nothing.
std::vector<Remedy> goodput_remedies(const GoodputCase& input, const RemedyOptions& options);
// Their names, "all of them" last.
std::vector<std::string> remedy_names();
// The case with one of them; as it was where it does not apply.
GoodputCase with_remedy(const GoodputCase& input, const std::string& name,
                        const RemedyOptions& options);

// What alone would bring the case to a share of effective time. Factors on what there is now; 1: it
// is there already; 0: not even without it.
struct GoodputRequirement {
  double recovery = 0;  // of detection, diagnosis, start, warm-up and an elastic job's stall
  double failures = 0;  // of all rates
  double latency = 0;   // of the notice of silent corruption
};
// Error unless `target` lies between 0 and 1.
GoodputRequirement goodput_requirement(const GoodputCase& input, double target);

}  // namespace orrery
