// SPDX-License-Identifier: Apache-2.0
// Knows how tests read the message of an error.
#pragma once

#include <string>

#include "sim/base/errors/check.h"

namespace orrery {

// The message of the Error that `run` throws, or "no error".
template <class Run>
std::string error_text(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace orrery
