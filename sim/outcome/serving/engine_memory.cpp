// SPDX-License-Identifier: Apache-2.0
// Derives an engine's memory from that of inference steps.
#include "sim/outcome/serving/engine_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/memory/memory.h"
#include "workloads/parameters/weight_split.h"

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

// Growth of a sequence between two lengths is that of a token; what does not grow is its own.
struct Kept {
  Bytes token, state;
};
Kept kept_of(const Model& model, const EngineLayout& layout, const Stack& stack) {
  constexpr std::int64_t near = 1024, far = 8192;
  const Bytes first = kept(model, layout, stack, near), second = kept(model, layout, stack, far);
  const Bytes token = (second - first) / static_cast<double>(far - near);
  return {.token = token, .state = std::max(Bytes(0), first - token * static_cast<double>(near))};
}

// Weights of the network that guesses: without the tables of words that it shares with the model.
Bytes drafter_weights(const Drafter& drafter, const EngineLayout& layout, const Stack& stack) {
  const Model& network = *drafter.network;
  const Job job{.task = Task::decode, .batch = 1, .context = 1};
  const double all =
      most_of(inference_memory(network, job, layout.layout(), stack), {C::parameters}).si();
  const double table = 2 * vocabulary_parameters(network, stack, layout.layout());
  const double tables = network.tied_embeddings ? table : 2 * table;
  double shared = 0;
  if (!drafter.own_embedding) shared += table;
  if (!drafter.own_head) shared += table;
  double joined = 0;
  for (const JoinedInput& input : drafter.joined)
    joined += 2 * static_cast<double>(input.columns / (input.split ? layout.tp : 1) * input.inner);
  const auto modules = static_cast<double>(drafter.modules);
  return Bytes(modules * (all - tables + joined) + tables - shared);
}

// Rows of queries, keys and values and of what attention made of them, beside a layer's widest
// point, where a program keeps them until the layer ends.
Bytes mixer_rows(const Model& model, const EngineLayout& layout, std::int64_t rows) {
  double most = 0;
  for (const LayerClass& layer : model.classes) {
    const Mixer& m = layer.mixer;
    if (m.kind != MixerKind::attention || layer.ffn.kind == FfnKind::none) continue;
    const std::int64_t width = m.heads * (m.qk_dim + m.v_dim) + m.kv_heads * (m.qk_dim + m.v_dim);
    most = std::max(most, static_cast<double>(width) / static_cast<double>(layout.tp));
  }
  return Bytes(2 * static_cast<double>(rows) * most);
}

}  // namespace

EngineMemory engine_memory(const Cluster& cluster, const Model& model, const EngineLayout& layout,
                           const Stack& stack, const Drafter* drafter) {
  Stack cached = stack;
  cached.kernels.attention_format = layout.cache;
  const EnginePolicy& policy = stack.serving.policy;
  const Job job{.task = Task::prefill, .sequence = policy.token_budget, .batch = 1};
  const std::vector<StageMemory> stages = inference_memory(model, job, layout.layout(), cached);
  EngineMemory m{.capacity = cluster.device.resolved().memory_capacity,
                 .weights = most_of(stages, {C::parameters}),
                 .workspace = most_of(stages, {C::workspace, C::communication})};
  if (stack.serving.memory.keeps_mixer_rows)
    m.workspace += mixer_rows(model, layout, policy.token_budget);
  m.outside = stack.serving.memory.outside.get();
  const Kept of_model = kept_of(model, layout, cached);
  m.token = of_model.token;
  m.state = of_model.state;
  if (drafter != nullptr && drafter->network) {
    const EngineLayout own = drafter->layout(layout);
    const Kept of_drafter = kept_of(*drafter->network, own, cached);
    m.drafter = drafter_weights(*drafter, own, cached);
    m.weights += m.drafter;
    m.token += of_drafter.token;
    m.state += of_drafter.state;
  }
  const double share = stack.serving.memory.share;
  const Bytes rest = m.capacity - m.weights - m.workspace;
  switch (stack.serving.memory.of) {
    case MemoryShare::total:
      m.cache = m.capacity * share - m.weights - m.workspace - m.outside;
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
  if (m.blocks >= 1) return m;
  m.refusal = fmt::format(
      "the engine does not fit: weights of {} and a workspace of {} leave {} of {} for keys and "
      "values",
      to_text(m.weights), to_text(m.workspace), to_text(std::max(Bytes(0), m.cache)),
      to_text(m.capacity));
  if (states > 0)
    m.refusal += fmt::format(", and the states of {} sequences take {} of it (--max-sequences)",
                             policy.max_sequences, to_text(Bytes(states)));
  return m;
}

}  // namespace orrery
