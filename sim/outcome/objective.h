// SPDX-License-Identifier: Apache-2.0
// Knows by what layouts are put in order.
#pragma once

#include <cstdint>

namespace orrery {

// energy: of accelerators and their hosts, for a step of the job.
enum class Objective : std::uint8_t { time, cost, energy };

}  // namespace orrery
