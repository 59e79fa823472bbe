// SPDX-License-Identifier: Apache-2.0
// Gives random tests the seeds that stand in them, or others where $ORRERY_SEED says so.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace orrery {

// The seed as written; other cases for each number in $ORRERY_SEED (tests/nightly/run seeds).
inline std::uint64_t fresh(std::uint64_t written) {
  static const char* const given = std::getenv("ORRERY_SEED");
  return given == nullptr ? written : written + 0x9E3779B97F4A7C15U * std::stoull(given);
}

}  // namespace orrery
