// SPDX-License-Identifier: Apache-2.0
// Judges whether what was asked for can exist.
#include "sim/outcome/verdict.h"

#include "sim/engine/capability.h"

namespace orrery {

Verdict program_verdict(const Stack& stack, const Device& device, PrecisionRecipe precision) {
  const std::string why = cannot_run(stack, device, precision);
  if (why.empty()) return {};
  return {.runs = false, .why = why, .probability = 0};
}

Verdict verdict_of(const MemoryVerdict& memory) {
  return {.fits = memory.fits,
          .why = memory.fits ? "" : memory.reason,
          .probability = memory.probability};
}

}  // namespace orrery
