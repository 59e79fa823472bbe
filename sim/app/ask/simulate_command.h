// SPDX-License-Identifier: Apache-2.0
// Knows the command `simulate`: one layout, predicted and explained.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command simulate_command();

}  // namespace orrery
