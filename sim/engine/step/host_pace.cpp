// SPDX-License-Identifier: Apache-2.0
// Computes the mean of the longer of a device's time and the longest of several normal ones.
#include "sim/engine/step/host_pace.h"

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>

namespace orrery {

namespace {

// How likely one of `ranks` standard normal values is above z, exact to rounding in the far tail.
double any_above(double z, double ranks) {
  const double one = 0.5 * std::erfc(z / std::numbers::sqrt2);
  return -std::expm1(ranks * std::log1p(-one));
}

// Mean of what the largest of `ranks` standard normal values has above z.
double mean_above(double z, double ranks) {
  constexpr double always = -9;  // one value is above it but for 1e-19
  const double low = std::max(z, always);
  // Beyond it any of `ranks` is found less than 1e-15 of the time.
  const double high = std::max(low, std::sqrt(2 * std::log(ranks)) + 8);
  const double certain = low - z;
  using Rule = boost::math::quadrature::gauss_kronrod<double, 31>;
  return certain +
         Rule::integrate([&](double x) { return any_above(x, ranks); }, low, high, 8, 1e-10);
}

}  // namespace

Seconds paced_by_hosts(Seconds device, Seconds host, const HostPace& pace) {
  const Seconds longer = std::max(device, host);
  const Seconds deviation = pace.spread * host;
  if (deviation <= Seconds(0)) return longer;
  const double beyond = mean_above((device - host) / deviation,
                                   static_cast<double>(std::max<std::int64_t>(1, pace.ranks)));
  return std::max(longer, device + beyond * deviation);
}

}  // namespace orrery
