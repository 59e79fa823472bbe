// SPDX-License-Identifier: Apache-2.0
// Builds models from the dimensions that a row states, over the catalogue's shape where it has one.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/validate/rows/rows.h"

namespace orrery {
namespace {

[[noreturn]] void refuse(const std::string& found, const std::string& expected) {
  throw Error({.file = "model", .path = "", .found = found, .expected = expected, .nearest = ""});
}

bool is_hybrid(const Model& model) {
  return std::any_of(model.classes.begin(), model.classes.end(), [](const LayerClass& layer) {
    return layer.mixer.kind == MixerKind::mamba2 || layer.mixer.kind == MixerKind::none;
  });
}

// Proxies of a few layers keep the kinds of layers: one of the leading run, then what follows it.
void truncate_layers(Model& model, std::int64_t layers, std::vector<std::string>& assumed) {
  const std::vector<std::uint8_t> all = model.layers;
  if (layers > static_cast<std::int64_t>(all.size())) {
    // A deeper variant repeats the last layer's class.
    model.layers.resize(static_cast<std::size_t>(layers), all.back());
    return;
  }
  std::size_t run = 1;
  while (run < all.size() && all[run] == all.front()) ++run;
  const bool leading =
      run > 1 && run * 2 < all.size() && static_cast<std::size_t>(layers) < all.size();
  std::vector<std::uint8_t> kept;
  if (leading) kept.push_back(all.front());
  for (std::size_t i = leading ? run : 0;
       i < all.size() && kept.size() < static_cast<std::size_t>(layers); ++i)
    kept.push_back(all[i]);
  if (leading)
    assumed.push_back(
        fmt::format("proxy of {} layers with one of the {} leading dense layers", layers, run));
  model.layers = kept;
}

void adapt_attention(Mixer& mixer, const RowDimensions& d, std::int64_t hidden, bool same_hidden) {
  if (mixer.kind == MixerKind::mla) {
    if (d.heads > 0) mixer.heads = mixer.kv_heads = d.heads;
    return;
  }
  if (mixer.kind != MixerKind::attention) return;
  const bool same = same_hidden && (d.heads == 0 || d.heads == mixer.heads);
  if (d.heads > 0) mixer.heads = d.heads;
  if (d.kv_heads > 0)
    mixer.kv_heads = d.kv_heads;
  else if (!same)
    mixer.kv_heads = mixer.heads;
  if (d.head_dim > 0)
    mixer.qk_dim = mixer.v_dim = d.head_dim;
  else if (!same)
    mixer.qk_dim = mixer.v_dim = hidden / mixer.heads;
}

void adapt_ffn(Ffn& ffn, const RowDimensions& d, bool moe_model) {
  if (ffn.kind == FfnKind::dense && !moe_model && d.ffn > 0) ffn.width = d.ffn;
  if (ffn.kind != FfnKind::moe) return;
  if (d.ffn > 0) ffn.width = d.ffn;
  if (d.experts > 1) ffn.experts = d.experts;
  if (d.topk > 0) ffn.topk = d.topk;
}

Activation activation_from(const std::string& mlp) {
  if (mlp == "swiglu") return Activation::swiglu;
  if (mlp == "geglu") return Activation::geglu;
  if (mlp == "sqrelu") return Activation::squared_relu;
  if (mlp == "relu") return Activation::relu;
  return Activation::gelu;
}

// Tied or not, whichever is nearer to the published size; GPT-style models tie unless told.
void choose_tying(Model& model, const RowDimensions& d) {
  model.tied_embeddings = model.position == PositionKind::learned;
  if (d.parameters <= 0) return;
  const auto distance = [&](bool tied) {
    model.tied_embeddings = tied;
    return std::abs(static_cast<double>(count_parameters(model).total) - d.parameters);
  };
  const double untied = distance(false);
  model.tied_embeddings = distance(true) < untied;
}

// What a row leaves out of the dimensions of a model that the catalogue lacks, as most models have
// it. One of layers and hidden follows from the published size of a dense model.
RowDimensions with_usual_dimensions(const RowDimensions& told, std::vector<std::string>& assumed) {
  RowDimensions d = told;
  const auto assume = [&assumed](std::int64_t& value, const char* column, std::int64_t usual) {
    if (value > 0 || usual <= 0) return;
    value = usual;
    assumed.push_back(fmt::format("{} not stated: {}", column, usual));
  };
  const bool gated = d.mlp.ends_with("glu");
  constexpr double parameters_of_layer = 12;  // times hidden squared
  if (d.experts <= 1 && d.parameters > 0 && (d.layers > 0) != (d.hidden > 0)) {
    if (d.layers > 0) {
      constexpr std::int64_t grain = 128;
      const double wide =
          std::sqrt(d.parameters / parameters_of_layer / static_cast<double>(d.layers));
      assume(d.hidden, "hidden", grain * std::llround(wide / static_cast<double>(grain)));
    } else {
      const auto hidden = static_cast<double>(d.hidden);
      assume(d.layers, "layers",
             std::llround(d.parameters / parameters_of_layer / hidden / hidden));
    }
  }
  if (d.hidden <= 0) return d;
  constexpr std::int64_t grain = 256, old_vocabulary = 50304, new_vocabulary = 128256;
  assume(d.ffn, "ffn", gated ? (d.hidden * 8 / 3 + grain - 1) / grain * grain : 4 * d.hidden);
  assume(d.vocab, "vocab", gated ? new_vocabulary : old_vocabulary);
  if (d.heads > 0) return d;
  // Heads of about 128 that tensor parallelism of 8 can split.
  constexpr std::int64_t usual_head = 128, smallest = 64, widest = 256;
  std::int64_t best = 0;
  for (std::int64_t size = smallest; size <= widest; ++size)
    if (d.hidden % (8 * size) == 0 &&
        (best == 0 || std::abs(size - usual_head) < std::abs(best - usual_head)))
      best = size;
  if (best > 0) assume(d.heads, "heads", d.hidden / best);
  return d;
}

void require_dimensions(const RowDimensions& d) {
  struct Needed {
    const char* column;
    std::int64_t value;
  };
  for (const Needed& needed :
       {Needed{"layers", d.layers}, Needed{"hidden", d.hidden}, Needed{"heads", d.heads},
        Needed{"ffn", d.ffn}, Needed{"vocab", d.vocab}})
    if (needed.value <= 0) refuse("no " + std::string(needed.column), "the model's dimensions");
}

}  // namespace

Model adapt_model(const Model& base, const RowDimensions& d, std::vector<std::string>& assumed) {
  Model model = base;
  if (d.vocab > 0) model.vocab = d.vocab;
  if (d.layers > 0 && d.layers != model.layer_count()) truncate_layers(model, d.layers, assumed);
  if (model.positions > 0) model.positions = std::max(model.positions, d.sequence);
  if (is_hybrid(model)) return model;  // columns cannot tell which of its layers they mean
  const bool same_hidden = d.hidden == 0 || d.hidden == model.hidden;
  if (d.hidden > 0) model.hidden = d.hidden;
  const bool moe = model.has_experts();
  for (LayerClass& layer : model.classes) {
    adapt_attention(layer.mixer, d, model.hidden, same_hidden);
    adapt_ffn(layer.ffn, d, moe);
  }
  return model;
}

Model fill_template(const Model& shape, const std::string& name, const RowDimensions& told,
                    std::vector<std::string>& assumed) {
  const RowDimensions d = with_usual_dimensions(told, assumed);
  require_dimensions(d);
  std::vector<std::string> ignored;
  Model model = adapt_model(shape, d, ignored);
  model.name = model.title = name;
  return model;
}

Model model_from_dimensions(const std::string& name, const RowDimensions& told,
                            std::vector<std::string>& assumed) {
  const RowDimensions d = with_usual_dimensions(told, assumed);
  if (d.attention.starts_with("mla") || d.attention.starts_with("hybrid") ||
      d.attention.find("mamba") != std::string::npos)
    refuse(fmt::format("{} layers in {}, which is not in the catalogue", d.attention, name),
           "a catalogued model: columns cannot tell such layers' shapes");
  require_dimensions(d);
  Model model;
  model.name = model.title = name;
  model.family = "row";
  model.hidden = d.hidden;
  model.vocab = d.vocab;
  const Activation activation = activation_from(d.mlp);
  // Plain GELU or ReLU means GPT's block: biases, LayerNorm, learned positions.
  const bool gpt = activation == Activation::gelu || activation == Activation::relu;
  model.norm =
      gpt || activation == Activation::squared_relu ? NormKind::layer_norm : NormKind::rms_norm;
  model.position = gpt ? PositionKind::learned : PositionKind::rotary;
  model.positions = gpt ? d.sequence : 0;
  LayerClass layer;
  layer.mixer.heads = d.heads;
  layer.mixer.kv_heads = d.kv_heads > 0 ? d.kv_heads : d.heads;
  layer.mixer.qk_dim = layer.mixer.v_dim = d.head_dim > 0 ? d.head_dim : d.hidden / d.heads;
  layer.mixer.qkv_bias = layer.mixer.out_bias = gpt;
  layer.ffn.activation = activation;
  layer.ffn.width = d.ffn;
  layer.ffn.bias = gpt;
  if (d.experts > 1) {
    layer.ffn.kind = FfnKind::moe;
    layer.ffn.experts = d.experts;
    layer.ffn.topk = std::max<std::int64_t>(1, d.topk);
  }
  for (std::int64_t i = 0; i < d.layers; ++i) append_layer(model, layer);
  choose_tying(model, d);
  assumed.push_back("model from the row's dimensions");
  return model;
}

}  // namespace orrery
