// SPDX-License-Identifier: Apache-2.0
// Knows what a command that prints once, at its end, came to.
#pragma once

#include <string>

#include "sim/app/answer/exit_code.h"

namespace orrery {

struct Printed {
  std::string text;  // of stdout, whole
  ExitCode code = ExitCode::answer;
};

}  // namespace orrery
