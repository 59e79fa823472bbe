// SPDX-License-Identifier: Apache-2.0
// Must compile only without WRONG: a sum of unlike dimensions is an error.
#include "sim/base/units/units.h"

orrery::Seconds sum(orrery::Seconds a, [[maybe_unused]] orrery::Bytes b) {
#ifdef WRONG
  return a + b;
#else
  return a + a;
#endif
}
