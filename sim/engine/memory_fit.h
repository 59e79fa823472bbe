// SPDX-License-Identifier: Apache-2.0
// Tells whether a layout fits: what is allocated, as the allocator rounds it, against the device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/device.h"
#include "workloads/memory/memory.h"

namespace orrery {

// Where the device's capacity lies against the range of what the layout needs.
enum class MemoryStanding : std::uint8_t { fits, near_limit, does_not_fit };
std::string_view to_text(MemoryStanding);  // "fits" "near the limit" "does not fit"

struct MemoryVerdict {
  std::vector<StageMemory> stages;
  std::int64_t worst_stage = 0;
  Bytes peak;         // allocated on the worst stage: what tensors take
  Bytes reserved;     // by the allocator for it: its blocks, and what it cannot give back
  Bytes needed;       // with the context and libraries: what the device must have
  Bytes capacity;     // of the device as the driver reports it
  Bytes host;         // what the rank that offloads most keeps in its host's memory
  bool fits = false;  // needed <= capacity, and host within the rank's share where that is known
  double margin = 0;  // capacity / needed - 1; of the host's memory where that is short
  // 90% range of `needed`: the allocated peak is off by up to `peak_error`, the allocator's
  // rounding and the context are somewhere in the stack's ranges. `probability` that it fits: of a
  // normal distribution of that width.
  Bytes needed_low, needed_high;
  double probability = 0;
  MemoryStanding standing = MemoryStanding::does_not_fit;
  std::string reason;  // when it does not fit: stage, largest category and sizes, one sentence
};

// Of the measured peaks in validation/, nine of ten are predicted this closely: a test holds it
// against them, and another against `memory` of validation/model_error.json.
inline constexpr double peak_error = 0.05;

MemoryVerdict memory_fit(const Model& model, const Job& job, const Layout& layout,
                         const Stack& stack, const ResolvedDevice& device);

// The same verdict without sizes or reason, for searches that reject many layouts. A device whose
// host_memory is 0 takes whatever is offloaded; accelerator_fits does not ask the host.
bool accelerator_fits(const Model& model, const Job& job, const Layout& layout, const Stack& stack,
                      const ResolvedDevice& device);
bool memory_fits(const Model& model, const Job& job, const Layout& layout, const Stack& stack,
                 const ResolvedDevice& device);

}  // namespace orrery
