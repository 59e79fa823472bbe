// SPDX-License-Identifier: Apache-2.0
// Knows how a timeline becomes a profile: shares of steps, gaps, tables.
#pragma once

#include "sim/observe/profile/steps.h"

namespace orrery::observe {

// Takes events of one device out of the timeline, the one with most work of kernels, and fills the
// profile. Error where no kernel is in it. `file` stands in messages.
void summarise(Timeline& timeline, const std::string& file, Profile& profile);

// Parts of it. Tables of kernels, collectives, operations and calls:
void fill_tables(const Timeline& timeline, Profile& profile);
// Steps with their times, and the longest gaps. The timeline's device events are sorted.
void fill_steps(const Timeline& timeline, const StepWindows& windows, Profile& profile);
// What others did on the device, once the steps are filled:
void fill_foreign_work(const Timeline& timeline, const StepWindows& windows, Profile& profile);

}  // namespace orrery::observe
