// SPDX-License-Identifier: Apache-2.0
// Knows what the binary's exit codes mean.
#pragma once

#include <cstdint>

namespace orrery {

// Scripts rely on these numbers: none of them changes its meaning.
enum class ExitCode : std::uint8_t {
  answer = 0,          // also the best so far at a time limit
  check_failed = 1,    // an answer whose check failed: gates, a suspect GPU
  bad_input = 2,       // one line on stderr says what is wrong
  cannot_exist = 3,    // does not fit, does not run, no valid layout, no feasible point
  machine_failed = 4,  // disk full, no memory, a build of the launcher that failed
  interrupted = 130,   // SIGINT, after what is known by then
  terminated = 143,    // SIGTERM, likewise
};

constexpr int to_int(ExitCode code) { return static_cast<int>(code); }

}  // namespace orrery
