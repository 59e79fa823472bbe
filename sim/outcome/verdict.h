// SPDX-License-Identifier: Apache-2.0
// Knows whether what was asked for can exist: whether the program runs there, and whether it fits.
#pragma once

#include <string>

#include "sim/engine/memory_fit.h"
#include "sim/engine/scenario.h"

namespace orrery {

struct Verdict {
  bool fits = true;  // the predicted need lies within the memory of the device and of its host
  bool runs = true;  // the program runs on the device, in the precision that was asked for
  std::string why;   // one sentence without its full stop; empty where it exists
  double probability = 1;  // that it exists: 0 where it does not run
  bool exists() const { return fits && runs; }
};

// Of the program alone: whether it runs on the device, in the precision.
Verdict program_verdict(const Stack& stack, const Device& device, PrecisionRecipe precision);

// Of a layout whose memory was judged.
Verdict verdict_of(const MemoryVerdict& memory);

}  // namespace orrery
