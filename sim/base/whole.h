// SPDX-License-Identifier: Apache-2.0
// Knows what whole numbers are needed for: shares of a count, and places in a list.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery {

// a / b, rounded up. Both are at least 0, b is not 0; no sum overflows.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

constexpr double to_double(std::int64_t n) { return static_cast<double>(n); }

// The place of a list that a count from 0 on names.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace orrery
