// SPDX-License-Identifier: Apache-2.0
// Names by what layouts are put in order.
#pragma once

#include <cstdint>

#include "sim/base/text/enum_names.h"

namespace orrery {

// energy: of accelerators and their hosts, for a step of the job.
enum class Objective : std::uint8_t { time, cost, energy };
inline constexpr auto objective_text = enum_names<Objective>({"time", "cost", "energy"});

}  // namespace orrery
