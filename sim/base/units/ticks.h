// SPDX-License-Identifier: Apache-2.0
// Knows engine time: a whole number of picoseconds, so that equal schedules compare equal.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/units/units.h"

namespace orrery {

[[noreturn]] void ticks_overflow();  // throws the Error of a time beyond 106 days

// A point in or a span of engine time. 106 days fit; to_ticks, sums and products throw Error beyond
// that (one predicted branch each).
struct Ticks {
  std::int64_t ps = 0;
  constexpr auto operator<=>(const Ticks&) const = default;
  constexpr Ticks operator+(Ticks o) const {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(ps, o.ps, &sum)) ticks_overflow();
    return {sum};
  }
  constexpr Ticks operator-(Ticks o) const {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(ps, o.ps, &difference)) ticks_overflow();
    return {difference};
  }
  constexpr Ticks operator*(std::int64_t n) const {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(ps, n, &product)) ticks_overflow();
    return {product};
  }
  constexpr Ticks& operator+=(Ticks o) { return *this = *this + o; }
  constexpr Ticks& operator-=(Ticks o) { return *this = *this - o; }
};

constexpr Ticks max(Ticks a, Ticks b) { return a < b ? b : a; }
constexpr Ticks min(Ticks a, Ticks b) { return a < b ? a : b; }
constexpr Seconds to_seconds(Ticks t) { return Seconds(static_cast<double>(t.ps) * 1e-12); }

// Rounds to the nearest picosecond. Error when negative, not finite or beyond 106 days.
Ticks to_ticks(Seconds t);

}  // namespace orrery
