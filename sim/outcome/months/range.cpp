// SPDX-License-Identifier: Apache-2.0
// Makes ranges of the results of goodput of the ranges of its inputs.
#include <cmath>

#include "sim/base/parallel.h"
#include "sim/base/random.h"
#include "sim/base/statistics.h"
#include "sim/outcome/months/goodput.h"

namespace orrery {
namespace {

// A pick whose middle is the value and whose 5 and 95% are the ends: rates and times are right by
// factors, so the two halves are lognormal; straight where an end is 0.
double pick_within(double value, double low, double high, RandomStream& random) {
  const double z = random.normal(0, 1) / normal_95;
  const double end = z < 0 ? low : high;
  if (end == value) return value;
  if (value > 0 && end > 0) return value * std::pow(end / value, std::abs(z));
  return std::max(0.0, value + (end - value) * std::abs(z));
}

template <class Q>
void pick(Ranged<Q>& input, RandomStream& random, double most) {
  const double value =
      std::min(pick_within(in_si(input.value), in_si(input.low), in_si(input.high), random), most);
  input = exactly(Q(value));
}

GoodputCase draw(const GoodputCase& input, RandomStream random) {
  constexpr double no_limit = 1e300, whole = 1, almost = 0.99;
  GoodputCase one = input;
  for (FailureClass& failure : one.failures) {
    pick(failure.rate, random, no_limit);
    pick(failure.removed, random, whole);
    pick(failure.repair, random, no_limit);
    pick(failure.latency, random, no_limit);
    pick(failure.outage, random, no_limit);
  }
  for (Ranged<Seconds>* time : {&one.detection, &one.diagnosis, &one.start, &one.warm_up})
    pick(*time, random, no_limit);
  pick(one.maintenance_rate, random, no_limit);
  pick(one.maintenance, random, no_limit);
  for (Ranged<double>* share :
       {&one.stragglers, &one.variation, &one.data_loading, &one.evaluation})
    pick(*share, random, almost);
  one.repair_crews = 0;  // a draw of many failures would have no end
  // Whoever has more failures than expected buys more spares.
  if (one.spare_probability > 0) one.spares = spares_needed(one, one.spare_probability);
  return one;
}

}  // namespace

GoodputRange goodput_range(const GoodputCase& input, std::uint64_t seed, int threads, int draws) {
  const Goodput middle = goodput(input);
  const auto count = static_cast<std::size_t>(std::max(draws, 1));
  std::vector<double> effective(count), ratio(count), days(count), failure(count);
  parallel_for(count, threads, [&](std::size_t i) {
    const Goodput one = goodput(draw(input, RandomStream(seed, i)));
    effective[i] = one.effective;
    ratio[i] = one.time_ratio;
    days[i] = one.days;
    failure[i] = one.mean_time_to_failure.si();
  });
  const auto range = [](double value, const std::vector<double>& drawn) {
    // The best guess is inside, also where most draws are worse.
    return Ranged<double>{.value = value,
                          .low = std::min(value, percentile(drawn, 5)),
                          .high = std::max(value, percentile(drawn, 95))};
  };
  const Ranged<double> mttf = range(middle.mean_time_to_failure.si(), failure);
  return {.effective = range(middle.effective, effective),
          .time_ratio = range(middle.time_ratio, ratio),
          .days = range(middle.days, days),
          .mean_time_to_failure = {
              .value = seconds(mttf.value), .low = seconds(mttf.low), .high = seconds(mttf.high)}};
}

}  // namespace orrery
