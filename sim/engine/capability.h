// SPDX-License-Identifier: Apache-2.0
// Knows what runs where: programs on platforms, precisions on devices and in programs.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/cluster.h"
#include "workloads/layout/job.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Why the stack does not run on the device in this precision: a sentence without its full stop,
// from what both state of themselves. Empty: it runs, or nothing is known against it.
std::string cannot_run(const Stack& stack, const Device& device, PrecisionRecipe precision);

// The two parts of that: whatever the precision, and of one that the stack runs at all.
std::string wrong_platform(const Stack& stack, const Device& device);
std::string cannot_compute(const Stack& stack, const Device& device, PrecisionRecipe precision);

// Why the device has no units for keys and values of a format; empty: it has, or it states nothing.
std::string cannot_cache(const Device& device, Format cache);

// Precisions that the device states, in the order of its entry; of a device that states none,
// those of 16 bits that it has a rate for.
std::vector<PrecisionRecipe> device_precisions(const Device& device);

// The stack that people run such jobs with on such devices, as the device's entry says; empty: it
// says nothing.
std::string usual_stack(const Device& device, Task task);

}  // namespace orrery
