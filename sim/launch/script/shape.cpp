// SPDX-License-Identifier: Apache-2.0
// Says a model's shape in words, and in MaxText's keys.
#include "sim/launch/script/shape.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/base/text/words.h"

namespace orrery {
namespace {

// "8" or "8 to 64", of all layers.
template <class Size>
std::string sizes(const Model& model, Size size) {
  std::set<std::int64_t> all;
  for (const LayerClass& layer : model.classes)
    if (size(layer) > 0) all.insert(size(layer));
  if (all.empty()) return "";
  return all.size() == 1 ? grouped(*all.begin())
                         : fmt::format("{} to {}", grouped(*all.begin()), grouped(*all.rbegin()));
}

// One block of attention and of a feed-forward or experts, the same in every layer.
const LayerClass* only_block(const Model& model) {
  if (model.classes.size() != 1 || model.mtp_layers > 0) return nullptr;
  return &model.classes.front();
}

bool is_llama_block(const Model& model, const LayerClass& layer) {
  const Mixer& m = layer.mixer;
  const bool plain_attention = m.kind == MixerKind::attention && m.qk_dim == m.v_dim &&
                               m.window == 0 && !m.qkv_bias && !m.out_bias && !m.qk_norm &&
                               !m.sinks && !m.out_gate && !is_served_only(m);
  return plain_attention && layer.norms == 2 && layer.ffn.activation == Activation::swiglu &&
         !layer.ffn.bias && layer.ffn.shared_width == 0 && layer.ffn.latent == 0 &&
         !layer.ffn.router_bias && model.norm == NormKind::rms_norm &&
         model.position == PositionKind::rotary && !model.parallel_block && !model.embedding_norm;
}

}  // namespace

ShapeFlags maxtext_shape(const Model& model) {
  ShapeFlags out;
  const LayerClass* layer = only_block(model);
  if (!layer || !is_llama_block(model, *layer) || layer->ffn.kind == FfnKind::none) {
    out.missing.push_back(
        "The model is no plain block of Llama or Mixtral: its own file of MaxText says its shape.");
    return out;
  }
  const bool experts = layer->ffn.kind == FfnKind::moe;
  const auto set = [&](const char* name, const auto& value) {
    out.flags.push_back({name, fmt::format("{}", value), ""});
  };
  set("decoder_block", experts ? "mixtral" : "llama2");
  set("base_num_decoder_layers", model.layer_count());
  set("base_emb_dim", model.hidden);
  set("base_mlp_dim", layer->ffn.width);
  set("base_num_query_heads", layer->mixer.heads);
  set("base_num_kv_heads", layer->mixer.kv_heads);
  set("head_dim", layer->mixer.qk_dim);
  set("vocab_size", model.vocab);
  set("logits_via_embedding", model.tied_embeddings);
  if (!experts) return out;
  set("base_moe_mlp_dim", layer->ffn.width);
  set("num_experts", layer->ffn.experts);
  set("num_experts_per_tok", layer->ffn.topk);
  return out;
}

std::string shape_in_words(const Model& model) {
  std::vector<std::string> parts = {plural(model.layer_count(), "layer"),
                                    grouped(model.hidden) + " wide"};
  const auto add = [&](const std::string& size, const std::string& text) {
    if (!size.empty()) parts.push_back(fmt::format(fmt::runtime(text), size));
  };
  add(sizes(model, [](const LayerClass& l) { return l.mixer.heads; }), "{} heads");
  add(sizes(model, [](const LayerClass& l) { return l.mixer.kv_heads; }), "{} of keys and values");
  add(sizes(model,
            [](const LayerClass& l) { return l.ffn.kind == FfnKind::dense ? l.ffn.width : 0; }),
      "feed-forward {}");
  add(sizes(model, [](const LayerClass& l) { return l.ffn.experts; }), "{} experts");
  add(sizes(model,
            [](const LayerClass& l) { return l.ffn.kind == FfnKind::moe ? l.ffn.width : 0; }),
      "each of {}");
  add(sizes(model, [](const LayerClass& l) { return l.ffn.topk; }), "{} a token");
  parts.push_back("vocabulary " + grouped(model.vocab));
  return joined(parts, ", ");
}

}  // namespace orrery
