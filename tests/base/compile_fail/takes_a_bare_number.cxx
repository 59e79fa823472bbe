// SPDX-License-Identifier: Apache-2.0
// Must compile only without WRONG: a number becomes a quantity by name only.
#include "sim/base/units/units.h"

orrery::Seconds pause() {
#ifdef WRONG
  return 2.5;
#else
  return orrery::seconds(2.5);
#endif
}
