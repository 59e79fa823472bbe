// SPDX-License-Identifier: Apache-2.0
// Knows cases of goodput for tests: made by hand, and drawn at random.
#pragma once

#include <cmath>

#include "sim/base/random.h"
#include "sim/outcome/months/goodput.h"

namespace orrery {

inline Ranged<Seconds> time_of(double value) { return exactly(seconds(value)); }

// One kind of failure of hosts, one remote tier, nothing else.
inline GoodputCase plain_case(double mean_time_to_failure, double stall, double recovery) {
  GoodputCase input{.gpus = 1024, .units = {.count = 128}, .step = seconds(1)};
  input.failures = {{.name = "host",
                     .rate = exactly(Hertz(1 / mean_time_to_failure)),
                     .removed = exactly(0.0),
                     .repair = time_of(3600)}};
  input.start = time_of(recovery);
  input.tiers = {{.name = "remote", .stall = seconds(stall)}};
  return input;
}

// Anything that the closed form and the simulation both describe exactly: one tier.
inline GoodputCase random_case(RandomStream& random) {
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, random.uniform());
  };
  const double mttf = between(600, 1e5);
  GoodputCase input = plain_case(mttf, between(0.1, 60), between(10, 0.5 * mttf));
  input.detection = time_of(between(1, 120));
  input.diagnosis = time_of(between(1, 120));
  input.warm_up = time_of(between(1, 60));
  input.tiers[0].write = seconds(between(0.1, 300));
  input.tiers[0].read = seconds(between(0.1, 100));
  if (random.uniform() < 0.5) input.tiers[0].interval = seconds(between(300, 7200));
  if (random.uniform() < 0.5) input.tiers[0].slowed = 0.5 * random.uniform();
  input.failures[0].removed = exactly(random.uniform());
  input.failures[0].repair = time_of(between(0.3, 20) * mttf);
  FailureClass software = input.failures[0];
  software.name = "software";
  software.blast = BlastRadius::process;
  software.job_wide = true;
  software.removed = exactly(0.0);
  software.rate = exactly(Hertz(1 / between(600, 1e5)));
  software.outage = time_of(random.uniform() < 0.5 ? 0 : between(1, 300));
  input.failures.push_back(software);
  if (random.uniform() < 0.5) {
    input.maintenance_rate = exactly(Hertz(1 / between(1e4, 1e6)));
    input.maintenance = time_of(between(60, 3600));
  }
  input.spares = static_cast<std::int64_t>(random.below(12));
  input.stragglers = exactly(0.1 * random.uniform());
  input.evaluation = exactly(0.1 * random.uniform());
  return input;
}

}  // namespace orrery
