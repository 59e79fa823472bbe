// SPDX-License-Identifier: Apache-2.0
// Must compile only without WRONG: power and energy do not compare.
#include "sim/base/units/units.h"

bool less(orrery::Watts power, orrery::Joules energy, orrery::Seconds time) {
#ifdef WRONG
  (void)time;
  return power < energy;
#else
  return power < energy / time;
#endif
}
