// Judges whether what was asked for can exist.
#include "sim/outcome/verdict.h"

namespace orrery {

Verdict verdict_of(const MemoryVerdict& memory) {
  return {.fits = memory.fits,
          .why = memory.fits ? "" : memory.reason,
          .probability = memory.probability};
}

}  // namespace orrery
