// SPDX-License-Identifier: Apache-2.0
// Gives the value of a setting that a stack does not name.
#pragma once

#include "sim/base/units/sourced.h"

namespace orrery {

// What holds of a stack that does not name the value.
template <class T>
Sourced<T> unstated(T value) {
  return {.value = value,
          .low = value,
          .high = value,
          .evidence = Evidence::assumed,
          .source = "orrery-estimate",
          .reason = "a stack that names none has none"};
}

// The same where that is not certain.
inline Sourced<double> unstated(double value, double low, double high, Evidence evidence,
                                const char* reason, const char* source = "orrery-estimate") {
  return {.value = value,
          .low = low,
          .high = high,
          .evidence = evidence,
          .source = source,
          .reason = reason};
}

}  // namespace orrery
