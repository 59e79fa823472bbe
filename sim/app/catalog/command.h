// SPDX-License-Identifier: Apache-2.0
// Knows the command `catalog`: what is known, how it is found, whether it is in order.
#pragma once

#include "sim/app/line/command.h"

namespace orrery {

Command catalog_command();

}  // namespace orrery
