// SPDX-License-Identifier: Apache-2.0
// Derives an engine's memory from that of inference steps.
#include "sim/outcome/serving/engine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

constexpr std::int64_t near = 1024, far = 8192;  // tokens between which a sequence grows evenly

// Growth of a sequence between two lengths is that of a token. Of what does not grow, states are
// there from its first token on, and a window fills.
struct Kept {
  Bytes token, states, window;
};
Kept kept_of(const Model& model, const EngineLayout& layout, const Stack& stack) {
  const auto of = [&](std::int64_t tokens) { return kept(model, layout, stack, tokens); };
  const Bytes token = (of(far) - of(near)) / static_cast<double>(far - near);
  const Bytes states = std::max(Bytes(0), of(2) * 2.0 - of(4));  // a line, back to no tokens
  const Bytes own = std::max(Bytes(0), of(near) - token * static_cast<double>(near));
  return {
      .token = token, .states = std::min(states, own), .window = std::max(Bytes(0), own - states)};
}

// Tokens that fill the windows of a model's layers; longer ones are taken to grow from `near` on.
std::int64_t window_tokens(const Model& model) {
  std::int64_t longest = 1;
  for (const LayerClass& layer : model.classes)
    longest = std::max<std::int64_t>(longest, layer.mixer.window);
  return std::min(longest, near);
}

// What sequences keep beside their tokens, in blocks; and how many of them have states at all.
void count_sequences(EngineMemory& m, const EnginePolicy& policy, double block, Bytes states,
                     Bytes window, std::int64_t filled) {
  m.sequences = policy.max_sequences;
  if (block > 0)
    m.beside = {.states = static_cast<std::int64_t>(std::ceil(states.si() / block)),
                .window = static_cast<std::int64_t>(std::ceil(window.si() / block)),
                .window_tokens = filled};
  if (states <= Bytes(0)) return;
  const double least = block > 0 ? static_cast<double>(m.beside.states + 1) * block : states.si();
  m.sequences =
      std::min(m.sequences, static_cast<std::int64_t>(std::max(0.0, m.cache.si()) / least));
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

// Rows that experts read and made, of as many rows as a step may have: what goes in and what the
// gated products make, each for every choice of a row.
Bytes expert_rows(const Model& model, const EngineLayout& layout, std::int64_t rows) {
  double most = 0;
  for (const LayerClass& layer : model.classes) {
    const Ffn& ffn = layer.ffn;
    if (ffn.kind != FfnKind::moe) continue;
    const auto width = static_cast<double>(ffn.latent > 0 ? ffn.latent : model.hidden);
    const double made = 2 * static_cast<double>(ffn.width) / static_cast<double>(layout.etp);
    most = std::max(
        most, static_cast<double>(ffn.topk) * (std::max(made / 2, width) + std::max(made, width)));
  }
  return Bytes(2 * static_cast<double>(rows) * most);
}

// Of the sampler's try: logits of all sequences that may run, and the rows that they came from.
Bytes sampler_rows(const Model& model, const ServingMemory& memory, const EnginePolicy& policy) {
  const auto sequences = static_cast<double>(std::min(policy.max_sequences, policy.token_budget));
  return Bytes(static_cast<double>(memory.logit_bytes) * sequences *
                   static_cast<double>(model.vocab) +
               2 * static_cast<double>(policy.token_budget) * static_cast<double>(model.hidden));
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
  if (const ServingMemory& memory = stack.serving.memory; memory.logit_bytes > 0) {
    Bytes tried = sampler_rows(model, memory, policy);
    if (memory.keeps_expert_rows) tried += expert_rows(model, layout, policy.token_budget);
    m.workspace = std::max(m.workspace, tried);
  }
  m.outside = stack.serving.memory.outside.get();
  const Kept of_model = kept_of(model, layout, cached);
  Bytes states = of_model.states, window = of_model.window;
  m.token = of_model.token;
  if (drafter != nullptr && drafter->network) {
    const EngineLayout own = drafter->layout(layout);
    const Kept of_drafter = kept_of(*drafter->network, own, cached);
    m.drafter = drafter_weights(*drafter, own, cached);
    m.weights += m.drafter;
    m.token += of_drafter.token;
    states += of_drafter.states;
    window += of_drafter.window;
  }
  m.state = states + window;
  // SGLang sizes the cache before it loads what guesses: that finds its place in the rest.
  const bool guesses_in_rest = stack.serving.memory.of == MemoryShare::before_workspace;
  const double share = stack.serving.memory.share;
  const Bytes rest = m.capacity - m.weights - m.workspace;
  switch (stack.serving.memory.of) {
    case MemoryShare::total:
      m.cache = m.capacity * share - m.weights - m.workspace - m.outside;
      break;
    case MemoryShare::before_workspace:
      m.cache = m.capacity * share - (m.weights - m.drafter);
      break;
    case MemoryShare::left:
      m.cache = rest * share;
      break;
  }
  const double block =
      (guesses_in_rest ? of_model.token : m.token).si() * static_cast<double>(policy.block_tokens);
  m.blocks = block > 0 ? static_cast<std::int64_t>(std::max(0.0, m.cache.si()) / block)
                       : std::int64_t{1} << 40;
  count_sequences(m, policy, block, states, window, window_tokens(model));
  if (m.blocks >= 1 && m.sequences >= layout.pp) return m;
  m.refusal = fmt::format(
      "the engine does not fit: weights of {} and a workspace of {} leave {} of {} for keys and "
      "values",
      to_text(m.weights), to_text(m.workspace), to_text(std::max(Bytes(0), m.cache)),
      to_text(m.capacity));
  if (states > Bytes(0))
    m.refusal += fmt::format(", and the states of a sequence take {}", to_text(states));
  return m;
}

}  // namespace orrery
