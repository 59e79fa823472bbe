// SPDX-License-Identifier: Apache-2.0
// Counts what a training or inference job allocates on each pipeline stage, by category.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/units.h"
#include "workloads/layout/layout.h"
#include "workloads/stack/stack.h"

namespace orrery {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  attention_activations,
  ffn_activations,
  expert_activations,
  norm_activations,
  checkpoints,    // layer inputs kept for recompute
  logits,         // head output and loss buffers
  communication,  // NCCL buffers, all-gathered parameters, reduction buckets
  workspace,      // cuBLAS, attention workspaces, quantised copies
  kv_cache,
  fragmentation,  // allocator rounding and gaps
};
inline constexpr int memory_category_count = enumerator_count<MemoryCategory>();
std::string_view to_text(MemoryCategory);

// Bytes on one accelerator of a stage: of each category what it holds at its own worst moment.
// `offloaded` lies in host memory and does not count here.
struct StageMemory {
  std::array<Bytes, memory_category_count> bytes{};
  Bytes offloaded;
  Bytes never_together;        // by how much the sum of the categories overstates the worst moment
  Bytes update_buffers;        // of communication and workspace, alive in the optimizer's update
  std::int64_t in_flight = 0;  // microbatch-chunks whose activations are held at the peak
  Bytes& operator[](MemoryCategory c) { return bytes[static_cast<std::size_t>(c)]; }
  Bytes operator[](MemoryCategory c) const { return bytes[static_cast<std::size_t>(c)]; }
  // Allocated at the worst moment: the categories without `fragmentation`, less `never_together`.
  Bytes peak() const;
  // Held by the optimizer's update: parameters, gradients, optimizer and `update_buffers`. It does
  // not grow with activations.
  Bytes static_bytes() const;
};

// Per pipeline stage (not position): chunks of a stage are added up, and activations are counted at
// the schedule's worst moment. Closed form, a few microseconds (bench_parts: memory): the search
// calls it first. `fragmentation` is left at zero: the engine's memory_fit fills it in.
std::vector<StageMemory> training_memory(const Model& model, const Job& job, const Layout& layout,
                                         const Stack& stack);
// Whether that holds of every stage; the first of which it does not ends the work.
bool every_training_stage(const Model& model, const Job& job, const Layout& layout,
                          const Stack& stack, const std::function<bool(const StageMemory&)>& holds);
std::vector<StageMemory> inference_memory(const Model& model, const Job& job, const Layout& layout,
                                          const Stack& stack);

}  // namespace orrery
