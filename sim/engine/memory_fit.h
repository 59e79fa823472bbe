// Knows whether a layout fits: what is allocated, as the allocator rounds it, against the device.
#pragma once

#include <string>
#include <vector>

#include "hw_models/device.h"
#include "workloads/memory.h"

namespace orrery {

struct MemoryVerdict {
  std::vector<StageMemory> stages;
  std::int64_t worst_stage = 0;
  Bytes peak;          // allocated on the worst stage
  Bytes reserved;      // with rounding, fragmentation and context: what the device must have
  Bytes capacity;      // of the device as the driver reports it
  bool fits = false;   // reserved <= capacity
  double margin = 0;   // capacity / reserved - 1
  std::string reason;  // when it does not fit: stage, largest category and sizes, one sentence
};

MemoryVerdict memory_fit(const Model& model, const Job& job, const Layout& layout,
                         const Stack& stack, const ResolvedDevice& device);

// The same verdict without sizes or reason, for searches that reject many layouts.
bool memory_fits(const Model& model, const Job& job, const Layout& layout, const Stack& stack,
                 const ResolvedDevice& device);

}  // namespace orrery
