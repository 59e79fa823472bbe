// SPDX-License-Identifier: Apache-2.0
// Builds the networks that guess tokens ahead.
#include "workloads/inference/drafter.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr std::int64_t eagle_vocabulary = 32'000;
constexpr std::int64_t eagle_features = 3;  // layers of the model that it reads
constexpr std::int64_t eagle_head = 128, eagle_kv_heads = 8;

// The same widths with one layer.
Model one_layer(const Model& model, const LayerClass& layer) {
  Model network = model;
  network.classes = {layer};
  network.layers = {0};
  network.mtp_layers = 0;
  network.tied_embeddings = false;
  return network;
}

Mixer eagle_mixer(const Model& model) {
  for (const LayerClass& layer : model.classes)
    if (layer.mixer.kind == MixerKind::attention) {
      Mixer mixer = layer.mixer;
      mixer.window = 0;
      mixer.sinks = false;
      return mixer;
    }
  return {.heads = std::max<std::int64_t>(eagle_kv_heads, model.hidden / eagle_head),
          .kv_heads = eagle_kv_heads,
          .qk_dim = eagle_head,
          .v_dim = eagle_head};
}

Ffn eagle_ffn(const Model& model) {
  for (const LayerClass& layer : model.classes)
    if (layer.ffn.kind == FfnKind::dense) return layer.ffn;
  for (const LayerClass& layer : model.classes)
    if (layer.ffn.kind == FfnKind::moe)
      return {.activation = layer.ffn.activation,
              .width = layer.ffn.topk * layer.ffn.width + layer.ffn.shared_width};
  return {.width = 4 * model.hidden};
}

}  // namespace

EngineLayout Drafter::layout(const EngineLayout& l) const {
  EngineLayout own = l;
  own.pp = 1;
  if (precision) own.precision = *precision;
  return own;
}

Drafter mtp_drafter(const Model& model, const EngineLayout& layout, std::int64_t drafts) {
  CHECK_THAT(model.mtp_layers > 0, "a model without prediction modules");
  Drafter d{.kind = DraftKind::mtp,
            .drafts = drafts,
            .network = one_layer(model, model.layer(model.layer_count() - 1)),
            .joined = {{.columns = model.hidden, .inner = 2 * model.hidden}},
            .modules = model.mtp_layers,
            .own_embedding = false,
            .own_head = false};
  if (linear_format(layout.precision) == Format::fp4) d.precision = PrecisionRecipe::bf16;
  return d;
}

Drafter eagle3_drafter(const Model& model, std::int64_t drafts) {
  const Mixer mixer = eagle_mixer(model);
  Drafter d{.kind = DraftKind::eagle3,
            .drafts = drafts,
            .network = one_layer(model, {.mixer = mixer, .ffn = eagle_ffn(model)}),
            .own_embedding = false,
            .precision = PrecisionRecipe::bf16};
  d.network->vocab = std::min(model.vocab, eagle_vocabulary);
  // Queries, keys and values read the embedding beside the state: the second half of their inputs.
  d.joined = {
      {.columns = model.hidden, .inner = eagle_features * model.hidden, .first_only = true},
      {.columns = mixer.heads * mixer.qk_dim + mixer.kv_heads * (mixer.qk_dim + mixer.v_dim),
       .inner = model.hidden,
       .split = true}};
  return d;
}

Drafter model_drafter(const Model& guesser, std::int64_t drafts) {
  return {.kind = DraftKind::draft, .drafts = drafts, .network = guesser};
}

Drafter ngram_drafter(std::int64_t drafts) { return {.drafts = drafts}; }

}  // namespace orrery
