// SPDX-License-Identifier: Apache-2.0
// Knows a paragraph about a candidate that a person or a program can act on.
#pragma once

#include <string>

#include "sim/calibrate/kernel/judgement.h"

namespace orrery {

std::string kernel_feedback(const KernelSpec& spec, const KernelJudgement& judgement,
                            const KernelMachine* machine);

// "12.3 us".
std::string short_time(double seconds);

}  // namespace orrery
