// SPDX-License-Identifier: Apache-2.0
// Must compile only without WRONG: bytes over a bandwidth are seconds and nothing else.
#include "sim/base/units/units.h"

auto transfer(orrery::Bytes size, orrery::BytesPerSecond bandwidth) {
#ifdef WRONG
  orrery::Bytes time = size / bandwidth;
#else
  orrery::Seconds time = size / bandwidth;
#endif
  return time;
}
