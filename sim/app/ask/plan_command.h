// SPDX-License-Identifier: Apache-2.0
// Knows the command `plan`: a question file in, a document of the machines that answer it out.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command plan_command();

}  // namespace orrery
