// SPDX-License-Identifier: Apache-2.0
// Derives an engine's memory from that of inference steps.
#include "sim/outcome/serving/engine_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/memory/memory.h"

namespace orrery {
namespace {

using C = MemoryCategory;

Bytes most_of(const std::vector<StageMemory>& stages, std::initializer_list<C> categories) {
  Bytes most;
  for (const StageMemory& stage : stages) {
    Bytes sum;
    for (const C category : categories) sum += stage[category];
    most = std::max(most, sum);
  }
  return most;
}

// Keys, values and states that sequences of so many tokens keep.
Bytes kept(const Model& model, const EngineLayout& layout, const Stack& stack,
           std::int64_t tokens) {
  const Job job{.task = Task::decode, .batch = 1, .context = tokens - 1};
  return most_of(inference_memory(model, job, layout.layout(), stack), {C::kv_cache});
}

}  // namespace

EngineMemory engine_memory(const Cluster& cluster, const Model& model, const EngineLayout& layout,
                           const Stack& stack) {
  Stack cached = stack;
  cached.kernels.attention_format = layout.cache;
  const EnginePolicy& policy = stack.serving.policy;
  const Job job{.task = Task::prefill, .sequence = policy.token_budget, .batch = 1};
  const std::vector<StageMemory> stages = inference_memory(model, job, layout.layout(), cached);
  // Growth of a token between two lengths; what does not grow is a sequence's own.
  constexpr std::int64_t near = 1024, far = 8192;
  const Bytes first = kept(model, layout, cached, near), second = kept(model, layout, cached, far);
  EngineMemory m{.capacity = cluster.device.resolved().memory_capacity,
                 .weights = most_of(stages, {C::parameters}),
                 .workspace = most_of(stages, {C::workspace, C::communication})};
  m.token = (second - first) / static_cast<double>(far - near);
  m.state = std::max(Bytes(0), first - m.token * static_cast<double>(near));
  const double share = stack.serving.memory_share;
  const Bytes rest = m.capacity - m.weights - m.workspace;
  switch (stack.serving.memory_of) {
    case MemoryShare::total:
      m.cache = m.capacity * share - m.weights - m.workspace;
      break;
    case MemoryShare::before_workspace:
      m.cache = m.capacity * share - m.weights;
      break;
    case MemoryShare::left:
      m.cache = rest * share;
      break;
  }
  const double block = m.token.si() * static_cast<double>(policy.block_tokens);
  const double states = m.state.si() * static_cast<double>(policy.max_sequences);
  m.blocks = block > 0 ? static_cast<std::int64_t>(std::max(0.0, m.cache.si() - states) / block)
                       : std::int64_t{1} << 40;
  if (m.blocks < 1)
    m.refusal = fmt::format(
        "the engine does not fit: weights of {} and a workspace of {} leave {} of {} for keys and "
        "values",
        to_text(m.weights), to_text(m.workspace), to_text(std::max(Bytes(0), m.cache)),
        to_text(m.capacity));
  return m;
}

}  // namespace orrery
