// SPDX-License-Identifier: Apache-2.0
// Counts steps in round numbers.
#include "sim/outcome/months/save_interval.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double slack = 1e-9;  // of rounding

// The k-th round number of steps, from 0: 1, 2, 5, then 10, 20, 25, 50 and tens of them.
double round_number(int k) {
  constexpr double first[] = {1, 2, 5}, decade[] = {1, 2, 2.5, 5};
  if (k < 3) return first[k];
  return decade[(k - 3) % 4] * std::pow(10.0, 1 + (k - 3) / 4);
}

}  // namespace

double whole_steps(double step, double least, double wanted) {
  return step * std::max({1.0, std::round(wanted / step), std::ceil(least / step * (1 - slack))});
}

std::vector<double> round_steps(double step, double least, double wanted) {
  int above = 0;
  while (step * round_number(above) < wanted * (1 - slack)) ++above;
  std::vector<double> found;
  for (int k = std::max(above - 2, 0); k < above + 2; ++k)
    if (const double seconds = step * round_number(k); seconds >= least * (1 - slack))
      found.push_back(seconds);
  while (found.empty()) {
    const double seconds = step * round_number(++above);
    if (seconds >= least * (1 - slack)) found.push_back(seconds);
  }
  return found;
}

}  // namespace orrery
