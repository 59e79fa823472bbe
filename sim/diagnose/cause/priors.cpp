// SPDX-License-Identifier: Apache-2.0
// Takes priors of faulty parts from the reliability catalogue.
#include "sim/diagnose/cause/priors.h"

#include <algorithm>
#include <cmath>

#include "hw_models/reliability.h"
#include "sim/outcome/months/job.h"

namespace orrery {
namespace {

// Who has a faulty part asks so many times as often as who has none. Judged.
constexpr double asks = 4;

// Of no cause more: runs on many accelerators are kept free of bad parts, and what the slowest of
// healthy boards costs is in the prediction. As probable as any other cause is thought. Judged.
constexpr double most = 0.1;

// So long a bad part stays at work before it is taken out: in Meta's RSC-1 1.2% of hosts were found
// to be bad, where 0.65% of hosts fail a day (arXiv 2410.21680).
const Seconds at_work = seconds(0.012 / 0.0065 * 86400);

// Such failures of all of the cluster's parts together, of each mode.
std::vector<FailureClass> failures_of(const std::string& profile, const Cluster& cluster) {
  FleetCounts fleet = fleet_counts(cluster);
  fleet.spare_planes = false;  // the others carry on slower, which is a fault here
  return failure_classes(load_reliability(profile), fleet, cluster.device, cluster.host);
}

Hertz rate_of(const std::vector<FailureClass>& failures, const std::string& name) {
  for (const FailureClass& failure : failures)
    if (failure.name == name) return failure.rate.value;
  return {};
}

}  // namespace

std::vector<double> priors_of(const Scenario& scenario) {
  const std::vector<FailureClass> own =
      failures_of(default_reliability(scenario.cluster.device.name), scenario.cluster);
  // The best documented profile, for parts that the cluster's own counts among others.
  const std::vector<FailureClass> others = failures_of(default_reliability(""), scenario.cluster);
  const double healthy = *causes().front().prior.value;
  std::vector<double> priors;
  for (const Cause& cause : causes()) {
    double bad_parts = 0;
    for (const std::string& part : cause.parts) {
      Hertz rate = rate_of(own, part);
      if (rate <= Hertz{}) rate = rate_of(others, part);
      bad_parts += rate * at_work;
    }
    priors.push_back(cause.prior.value.value_or(0) -
                     most * std::expm1(-asks * healthy * bad_parts / most));
  }
  return priors;
}

}  // namespace orrery
