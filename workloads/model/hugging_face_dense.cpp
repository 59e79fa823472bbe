// SPDX-License-Identifier: Apache-2.0
// Knows the Hugging Face configs of dense models; defaults are those of transformers' own classes.
#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "workloads/model/hugging_face_config.h"

namespace orrery {
namespace {

Ffn gated_ffn(const HuggingFaceFields& fields, std::string_view activation_key = "hidden_act",
              std::string_view fallback = "silu") {
  Ffn f;
  f.activation = fields.gated(activation_key, fallback);
  f.width = fields.required("intermediate_size");
  return f;
}

void append_layers(Model& model, std::int64_t count, const LayerClass& layer) {
  for (std::int64_t i = 0; i < count; ++i) append_layer(model, layer);
}

// Layers that differ by their attention window only.
void append_windowed(Model& model, LayerClass layer, const std::vector<bool>& windowed,
                     std::int64_t window) {
  for (bool limited : windowed) {
    layer.mixer.window = limited ? window : 0;
    append_layer(model, layer);
  }
}

// Attention with as many key-value heads as heads, and biases everywhere: GPT-2, OPT, BLOOM, NeoX.
LayerClass biased_layer(std::int64_t heads, std::int64_t hidden, std::int64_t width,
                        Activation activation, const JsonValue& at) {
  if (hidden % heads != 0) {
    at.fail("heads that divide the hidden size", fmt::format("{} heads, {} hidden", heads, hidden));
  }
  LayerClass layer;
  layer.mixer = {.heads = heads,
                 .kv_heads = heads,
                 .qk_dim = hidden / heads,
                 .v_dim = hidden / heads,
                 .qkv_bias = true,
                 .out_bias = true};
  layer.ffn = {.activation = activation, .width = width, .bias = true};
  return layer;
}

}  // namespace

// Defaults: attention_bias and mlp_bias false; mistral's sliding_window 4096, phi3's none.
Model read_llama_like(const HuggingFaceFields& fields, std::string_view type) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  LayerClass layer;
  layer.mixer = read_grouped_attention(fields, model.hidden);
  layer.mixer.qkv_bias = layer.mixer.out_bias = fields.flag("attention_bias", false);
  if (type != "llama") {
    layer.mixer.window = fields.nullable("sliding_window", type == "mistral" ? 4096 : 0);
  }
  layer.ffn = gated_ffn(fields);
  layer.ffn.bias = fields.flag("mlp_bias", false);
  append_layers(model, fields.layers(), layer);
  return model;
}

// Defaults: squared ReLU (hidden_act relu2), attention_bias and mlp_bias false, LayerNorm1P.
Model read_nemotron(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  model.norm = NormKind::layer_norm;
  LayerClass layer;
  layer.mixer = read_grouped_attention(fields, model.hidden);
  layer.mixer.qkv_bias = layer.mixer.out_bias = fields.flag("attention_bias", false);
  layer.ffn = {.activation = fields.plain("hidden_act", "relu2"),
               .width = fields.required("intermediate_size"),
               .bias = fields.flag("mlp_bias", false)};
  append_layers(model, fields.layers(), layer);
  return model;
}

// Defaults: head_dim 256, tied embeddings; gemma2: sliding_window 4096 on even layers; gemma3:
// sliding_window 4096 on all but every sixth layer (sliding_window_pattern 6), query-key norm, and
// for multimodal files vocab_size 262208, 8 heads and 4 key-value heads.
Model read_gemma(const HuggingFaceFields& fields, std::string_view type) {
  HuggingFaceFields filled = fields;
  const bool third = type == "gemma3" || type == "gemma3_text";
  if (third) {
    SortedJson json = fields.json.raw();
    const std::pair<const char*, int> defaults[] = {
        {"vocab_size", 262208}, {"num_attention_heads", 8}, {"num_key_value_heads", 4}};
    for (const auto& [key, value] : defaults) {
      if (json.is_object() && !json.contains(key)) json[key] = value;
    }
    filled.json = JsonValue::from(std::move(json), fields.json.file());
  }
  Model model = start_model(filled, filled.required("hidden_size"), true);
  LayerClass layer;
  layer.mixer = read_grouped_attention(filled, model.hidden, 256);
  layer.mixer.qk_norm = third;
  layer.mixer.qkv_bias = layer.mixer.out_bias = filled.flag("attention_bias", false);
  layer.ffn = gated_ffn(
      filled, filled.json.has("hidden_activation") ? "hidden_activation" : "hidden_act", "gelu");
  layer.norms = type == "gemma" ? 2 : 4;
  const std::int64_t window = type == "gemma" ? 0 : filled.nullable("sliding_window", 4096);
  const std::int64_t pattern = third ? filled.optional("sliding_window_pattern", 6) : 2;
  const auto rule = [&](std::int64_t i) { return pattern == 0 || (i + 1) % pattern != 0; };
  append_windowed(model, layer, filled.windowed(filled.layers(), rule), window);
  return model;
}

// Defaults: n_inner 4 x n_embd, activation_function gelu_new, tied embeddings.
Model read_gpt2(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("n_embd"), true);
  model.norm = NormKind::layer_norm;
  model.position = PositionKind::learned;
  model.positions = fields.required("n_positions");
  model.max_context = model.positions;
  const LayerClass layer = biased_layer(
      fields.required("n_head"), model.hidden, fields.optional("n_inner", 4 * model.hidden),
      fields.plain("activation_function", "gelu_new"), fields.json);
  append_layers(model, fields.layers("n_layer"), layer);
  return model;
}

// Defaults: attention_bias and use_parallel_residual true, untied embeddings.
Model read_gpt_neox(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  model.norm = NormKind::layer_norm;
  model.parallel_block = fields.flag("use_parallel_residual", true);
  LayerClass layer = biased_layer(fields.required("num_attention_heads"), model.hidden,
                                  fields.required("intermediate_size"),
                                  fields.plain("hidden_act", "gelu"), fields.json);
  layer.mixer.qkv_bias = layer.mixer.out_bias = fields.flag("attention_bias", true);
  append_layers(model, fields.layers(), layer);
  return model;
}

// Defaults: enable_bias and do_layer_norm_before true, activation relu, tied embeddings. The
// position table has two rows more than positions.
Model read_opt(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), true);
  if (fields.optional("word_embed_proj_dim", model.hidden) != model.hidden) {
    fields.json.at("word_embed_proj_dim").fail(fmt::format("hidden_size {}", model.hidden));
  }
  if (!fields.flag("do_layer_norm_before", true)) {
    fields.json.at("do_layer_norm_before").fail("true (norms after the layer are not modelled)");
  }
  model.norm = NormKind::layer_norm;
  model.position = PositionKind::learned;
  model.positions = fields.required("max_position_embeddings") + 2;
  LayerClass layer =
      biased_layer(fields.required("num_attention_heads"), model.hidden, fields.required("ffn_dim"),
                   fields.plain("activation_function", "relu"), fields.json);
  layer.mixer.qkv_bias = layer.mixer.out_bias = layer.ffn.bias = fields.flag("enable_bias", true);
  append_layers(model, fields.layers(), layer);
  return model;
}

// Old files say n_embed and num_attention_heads, new ones hidden_size and n_head. Tied embeddings.
Model read_bloom(const HuggingFaceFields& fields) {
  const auto either = [&](std::string_view one, std::string_view other) {
    return fields.json.find(one) ? one : other;
  };
  Model model = start_model(fields, fields.required(either("n_embed", "hidden_size")), true);
  model.norm = NormKind::layer_norm;
  model.position = PositionKind::alibi;
  model.embedding_norm = true;
  model.max_context = fields.optional("seq_length", 0);
  const LayerClass layer =
      biased_layer(fields.required(either("num_attention_heads", "n_head")), model.hidden,
                   4 * model.hidden, Activation::gelu, fields.json);
  append_layers(model, fields.layers(either("num_hidden_layers", "n_layer")), layer);
  return model;
}

// Defaults: ffn_hidden_size 4 x hidden, multi_query and parallel_attn true, bias, alibi and
// new_decoder_architecture false, tied embeddings. The new architecture has two norms a layer.
Model read_falcon(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), true);
  model.norm = NormKind::layer_norm;
  model.position = fields.flag("alibi", false) ? PositionKind::alibi : PositionKind::rotary;
  const bool grouped = fields.flag("new_decoder_architecture", false);
  model.parallel_block = grouped || fields.flag("parallel_attn", true);
  const bool bias = fields.flag("bias", false);
  LayerClass layer = biased_layer(fields.required("num_attention_heads"), model.hidden,
                                  fields.optional("ffn_hidden_size", 4 * model.hidden),
                                  fields.plain("activation", "gelu"), fields.json);
  if (grouped) {
    layer.mixer.kv_heads = fields.optional("num_kv_heads", layer.mixer.heads);
    layer.norms = static_cast<int>(fields.json.find("num_ln_in_parallel_attn")
                                       ? fields.json.at("num_ln_in_parallel_attn").integer(1, 2)
                                       : 2);
  } else {
    if (fields.flag("multi_query", true)) layer.mixer.kv_heads = 1;
    layer.norms = model.parallel_block ? 1 : 2;
  }
  layer.mixer.qkv_bias = layer.mixer.out_bias = layer.ffn.bias = bias;
  append_layers(model, fields.layers(), layer);
  return model;
}

}  // namespace orrery
