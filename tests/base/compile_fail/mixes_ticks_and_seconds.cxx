// SPDX-License-Identifier: Apache-2.0
// Must compile only without WRONG: engine time is not seconds until it is converted.
#include "sim/base/units/ticks.h"

orrery::Ticks later(orrery::Ticks now, orrery::Seconds wait) {
#ifdef WRONG
  return now + wait;
#else
  return now + orrery::to_ticks(wait);
#endif
}
