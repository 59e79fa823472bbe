// SPDX-License-Identifier: Apache-2.0
// Adds up what a prefill or a decode step holds on each pipeline stage: weights, KV cache,
// workspace.
#include <algorithm>

#include "workloads/layout/checkpoint.h"
#include "workloads/memory/memory.h"
#include "workloads/parameters/state_memory.h"
#include "workloads/parameters/weight_split.h"
#include "workloads/stack/memory_traits.h"

namespace orrery {
namespace {

using C = MemoryCategory;

struct Batch {
  double sequences = 0;  // of one replica
  double rows = 0;       // tokens that the step computes on this rank
  double history = 0;    // tokens of a sequence whose keys and values are kept, on this rank
};

Batch batch_of(const Job& job, const Layout& layout) {
  const double cp = static_cast<double>(layout.cp);
  const bool decode = job.task == Task::decode;
  const double sequences = static_cast<double>(std::max<std::int64_t>(job.batch, 1));
  const double step = decode ? 1.0 : static_cast<double>(job.sequence);
  return {.sequences = sequences,
          .rows = sequences * (decode ? 1.0 : step / cp),
          .history = (static_cast<double>(job.context) + step) / cp};
}

double weight_bytes(PrecisionRecipe precision) { return saved_input_bytes(precision); }

// Weights of a layer on a rank. A serving engine loads a checkpoint, whose parts may each have a
// precision of their own: products are shared out by the whole layer's counts.
double layer_weights(const Model& model, const LayerClass& layer, const LocalParameters& local,
                     const Layout& layout, const Stack& stack) {
  const double low = weight_bytes(layout.precision);
  const double others = 2 * (local.dense - local.products);
  if (!stack.serving.engine || model.checkpoints.empty())
    return low * (local.products + local.expert) + others;
  const auto of = [&](ModelPart part) {
    return weight_bytes(part_precision(model, layout.precision, part));
  };
  const LayerParameters all = layer_parameters(model, layer);
  const bool states = keeps_states(layer.mixer);
  const auto mixer = static_cast<double>(all.mixer), ffn = static_cast<double>(all.ffn);
  const double output = states ? 0.0
                               : static_cast<double>(layer.mixer.heads * layer.mixer.v_dim) *
                                     static_cast<double>(model.hidden);
  const double inputs = of(states ? ModelPart::state_mixer : ModelPart::attention);
  const double bytes =
      inputs * (mixer - output) + of(ModelPart::attention_output) * output +
      of(layer.ffn.kind == FfnKind::moe ? ModelPart::shared : ModelPart::dense) * ffn;
  const double products = mixer + ffn > 0 ? bytes / (mixer + ffn) * local.products : 0.0;
  return products + of(ModelPart::experts) * local.expert + others;
}

// Bytes of an element of keys and values; those of 4 bits have a scale byte for each 16.
double cache_element(Format format) {
  return format == Format::fp8 ? 1 : format == Format::fp4 ? 0.5 + 1.0 / 16 : 2;
}

// Keys of a compressed history, each of so many tokens, beside a window; an indexer's keys of a
// byte an element and an fp32 scale.
double latent_cache_bytes(const Mixer& m, const Batch& batch, double element) {
  const double key = element * static_cast<double>(m.kv_lora + m.rope_dim);
  const double window = std::min(batch.history, static_cast<double>(m.window));
  double entries = m.out_groups > 0 ? 0 : batch.history;
  if (m.compress > 0) entries = batch.history / static_cast<double>(m.compress);
  const double index = m.index_heads > 0 ? static_cast<double>(m.index_dim + 4) : 0;
  return batch.sequences * (key * (entries + window) + index * entries);
}

// Keys and values of one layer. Key-value heads are replicated when tp exceeds them; MLA keeps one
// latent per token on every rank; a window bounds the history; Mamba keeps a state per sequence.
double cache_bytes(const Mixer& m, const Batch& batch, const Layout& layout, const Stack& stack) {
  const double element = cache_element(stack.kernels.attention_format);
  const double tp = static_cast<double>(layout.tp);
  double history = batch.history;
  if (m.window > 0) history = std::min(history, static_cast<double>(m.window));
  const double tokens = batch.sequences * history;
  switch (m.kind) {
    case MixerKind::attention:
      return element * tokens * std::max(static_cast<double>(m.kv_heads) / tp, 1.0) *
             static_cast<double>(m.qk_dim + m.v_dim);
    case MixerKind::mla:
      return latent_cache_bytes(m, batch, element);
    case MixerKind::mamba2:
    case MixerKind::gated_delta: {
      const double inner = static_cast<double>(m.inner) / tp;
      const double mixed = inner + 2 * static_cast<double>(m.groups * m.state) / tp;
      return batch.sequences *
             (4 * inner * static_cast<double>(m.state) + 2 * mixed * static_cast<double>(m.conv));
    }
    case MixerKind::none:
      return 0;
  }
  return 0;
}

// Rows of the widest point of a layer, in and out, with the residual beside them.
double workspace_bytes(const Model& model, const LayerClass& layer, const Batch& batch,
                       const Layout& layout) {
  const double hidden = static_cast<double>(model.hidden), tp = static_cast<double>(layout.tp);
  const double gate = is_gated(layer.ffn.activation) ? 2 : 1;
  const Mixer& m = layer.mixer;
  const double mixer =
      static_cast<double>(m.heads * (m.qk_dim + m.v_dim) + m.kv_heads * (m.qk_dim + m.v_dim)) / tp;
  double ffn = (1 + gate) * static_cast<double>(layer.ffn.width) / tp;
  if (layer.ffn.kind == FfnKind::moe)
    ffn = static_cast<double>(layer.ffn.topk) *
          ((1 + gate) * static_cast<double>(layer.ffn.width) / static_cast<double>(layout.etp) +
           2 * hidden) /
          (layout.ep > 1 ? 1.0 : tp);
  return 2 * batch.rows * (3 * hidden + std::max(mixer, ffn));
}

}  // namespace

std::vector<StageMemory> inference_memory(const Model& model, const Job& job, const Layout& layout,
                                          const Stack& stack) {
  const Batch batch = batch_of(job, layout);
  const MemoryTraits traits = memory_traits(stack);
  const double hidden = static_cast<double>(model.hidden);
  const double table = vocabulary_parameters(model, stack, layout);
  std::vector<StageMemory> stages(static_cast<std::size_t>(layout.pp));
  const std::vector<Position> positions = partition_layers(model, layout, stack.sharding.partition);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Position& p = positions[i];
    StageMemory& m = stages[i % stages.size()];
    double weights = 0, cache = 0, work = 0;
    for (std::int64_t l = 0; l < p.layers; ++l) {
      const LayerClass& layer = model.layer(p.first_layer + l);
      const LocalParameters local = local_parameters(model, layer, layout);
      weights += layer_weights(model, layer, local, layout, stack);
      cache += cache_bytes(layer.mixer, batch, layout, stack);
      work = std::max(work, workspace_bytes(model, layer, batch, layout));
    }
    if (p.embedding) weights += 2 * (table + static_cast<double>(model.positions) * hidden);
    if (p.head && !(model.tied_embeddings && p.embedding)) weights += 2 * table;
    if (p.head) m[C::logits] = bytes(6 * batch.sequences * table / hidden);  // bf16 and fp32
    m[C::parameters] += bytes(weights);
    m[C::kv_cache] += bytes(cache);
    m[C::workspace] = std::max(m[C::workspace], bytes(work + traits.library_workspace));
    if (layout.tp > 1) m[C::communication] = bytes(2 * batch.rows * hidden);
    m.in_flight = 1;
  }
  for (StageMemory& m : stages) m.update_buffers = m[C::kv_cache];
  return stages;
}

}  // namespace orrery
