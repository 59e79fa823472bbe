// SPDX-License-Identifier: Apache-2.0
// Knows the Hugging Face configs of mixture-of-experts and hybrid models, and of the Qwen family.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/model/hugging_face_config.h"

namespace orrery {
namespace {

Ffn gated_experts(const HuggingFaceFields& fields, std::string_view width_key,
                  std::string_view experts_key) {
  Ffn f;
  f.kind = FfnKind::moe;
  f.activation = fields.gated("hidden_act", "silu");
  f.width = fields.required(width_key);
  f.experts = fields.required(experts_key);
  f.topk = fields.required("num_experts_per_tok");
  return f;
}

Ffn gated_dense(const HuggingFaceFields& fields, std::string_view width_key = "intermediate_size") {
  Ffn f;
  f.activation = fields.gated("hidden_act", "silu");
  f.width = fields.required(width_key);
  return f;
}

std::vector<bool> listed_layers(const JsonValue& list, std::int64_t count) {
  std::vector<bool> listed(static_cast<std::size_t>(count), false);
  for (const JsonValue& item : list.items()) {
    listed[static_cast<std::size_t>(item.integer(0, count - 1))] = true;
  }
  return listed;
}

}  // namespace

// Defaults: no sliding window.
Model read_mixtral(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  LayerClass layer;
  layer.mixer = read_grouped_attention(fields, model.hidden);
  layer.mixer.window = fields.optional("sliding_window", 0);
  layer.ffn = gated_experts(fields, "intermediate_size", "num_local_experts");
  const std::int64_t count = fields.layers();
  for (std::int64_t i = 0; i < count; ++i) append_layer(model, layer);
  return model;
}

// The community's port of Grok-1: four norms a layer, GELU-gated experts, tied embeddings.
Model read_grok(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), true);
  LayerClass layer;
  layer.mixer = read_grouped_attention(fields, model.hidden);
  layer.ffn = gated_experts(fields, "intermediate_size", "num_experts");
  layer.ffn.activation = fields.gated("hidden_act", "gelu");
  layer.norms = 4;
  const std::int64_t count = fields.layers();
  for (std::int64_t i = 0; i < count; ++i) append_layer(model, layer);
  return model;
}

// Defaults: biases on queries, keys and values (qwen2), query-key norm and head_dim 128 (qwen3);
// decoder_sparse_step 1 and no mlp_only_layers; use_sliding_window false, and if true the layers
// from max_window_layers on see sliding_window (4096) tokens.
Model read_qwen(const HuggingFaceFields& fields, std::string_view type) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  const bool third = type.starts_with("qwen3"), sparse = type.ends_with("_moe");
  const std::int64_t count = fields.layers();
  LayerClass layer;
  layer.mixer = read_grouped_attention(fields, model.hidden, type == "qwen3" ? 128 : 0);
  layer.mixer.qk_norm = third;
  if (third)
    layer.mixer.qkv_bias = layer.mixer.out_bias = fields.flag("attention_bias", false);
  else
    layer.mixer.qkv_bias = fields.flag("qkv_bias", true);
  const bool use_window = fields.flag("use_sliding_window", false);
  const std::int64_t window = use_window ? fields.nullable("sliding_window", 4096) : 0;
  const std::int64_t first = fields.optional("max_window_layers", 28);
  const auto windowed = fields.windowed(count, [&](std::int64_t i) { return i >= first; });

  Ffn experts;
  std::vector<bool> dense(static_cast<std::size_t>(count), !sparse);
  if (sparse) {
    experts = gated_experts(fields, "moe_intermediate_size", "num_experts");
    experts.shared_width = third ? 0 : fields.required("shared_expert_intermediate_size");
    experts.shared_gate = !third;
    if (const auto list = fields.json.find("mlp_only_layers")) dense = listed_layers(*list, count);
  }
  const std::int64_t step = std::max<std::int64_t>(1, fields.optional("decoder_sparse_step", 1));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const bool is_dense = dense[index] || (i + 1) % step != 0;
    layer.ffn = is_dense ? gated_dense(fields) : experts;
    layer.mixer.window = windowed[index] ? window : 0;
    append_layer(model, layer);
  }
  return model;
}

// Defaults: q_lora_rank 1536 (null: full rank), kv_lora_rank 512, heads of 128 + 64 rotary and 128
// value elements, no shared experts, first_k_dense_replace 0, moe_layer_freq 1, no MTP modules.
// V3 and Kimi K2 balance load with a bias per expert (topk_method noaux_tc).
Model read_deepseek(const HuggingFaceFields& fields, std::string_view type) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  Mixer m;
  m.kind = MixerKind::mla;
  m.heads = m.kv_heads = fields.required("num_attention_heads");
  m.q_lora = fields.nullable("q_lora_rank", 1536);
  m.kv_lora = fields.optional("kv_lora_rank", 512);
  m.rope_dim = fields.optional("qk_rope_head_dim", 64);
  m.qk_dim = fields.optional("qk_nope_head_dim", 128) + m.rope_dim;
  m.v_dim = fields.optional("v_head_dim", 128);
  m.index_heads = fields.optional("index_n_heads", 0);
  if (m.index_heads > 0) {
    m.index_dim = fields.optional("index_head_dim", 128);
    m.index_topk = fields.required("index_topk");
  }
  m.qkv_bias = m.out_bias = fields.flag("attention_bias", false);

  Ffn experts = gated_experts(fields, "moe_intermediate_size", "n_routed_experts");
  experts.shared_width = fields.optional("n_shared_experts", 0) * experts.width;
  const auto method = fields.json.find("topk_method");
  experts.router_bias = method ? method->text() == "noaux_tc" : type != "deepseek_v2";
  const std::int64_t step = std::max<std::int64_t>(1, fields.optional("moe_layer_freq", 1));
  const std::int64_t count = fields.layers();
  const std::int64_t first = fields.dense_layers(count, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool sparse = i >= first && i % step == 0;
    append_layer(model, {.mixer = m, .ffn = sparse ? experts : gated_dense(fields)});
  }
  if (const auto mtp = fields.json.find("num_nextn_predict_layers")) {
    model.mtp_layers = mtp->integer(0, 64);
  }
  return model;
}

// Defaults: head_dim 128, attention_bias and use_qk_norm false, first_k_dense_replace 1, one shared
// expert, no MTP modules. Biases on queries, keys and values only.
Model read_glm4_moe(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  Mixer m = read_grouped_attention(fields, model.hidden, 128);
  m.qkv_bias = fields.flag("attention_bias", false);
  m.qk_norm = fields.flag("use_qk_norm", false);
  Ffn experts = gated_experts(fields, "moe_intermediate_size", "n_routed_experts");
  experts.shared_width = fields.optional("n_shared_experts", 1) * experts.width;
  experts.router_bias = true;
  const std::int64_t count = fields.layers();
  const std::int64_t first = fields.dense_layers(count, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    append_layer(model, {.mixer = m, .ffn = i >= first ? experts : gated_dense(fields)});
  }
  if (const auto mtp = fields.json.find("num_nextn_predict_layers")) {
    model.mtp_layers = mtp->integer(0, 64);
  }
  return model;
}

// Lightning attention keeps a state of head_dim x head_dim for each head and gates its output: the
// products and the scan of a Mamba-2 layer with as many groups as heads, but for its short
// convolution.
static Mixer lightning_attention(const Mixer& softmax) {
  return {.kind = MixerKind::mamba2,
          .heads = softmax.heads,
          .qk_dim = 0,
          .v_dim = softmax.qk_dim,
          .state = softmax.qk_dim,
          .groups = softmax.heads,
          .conv = 1,
          .inner = softmax.heads * softmax.qk_dim};
}

// attn_type_list: 0 for layers of lightning attention, 1 for softmax; the same in words in
// layer_types. Neither: softmax alone. Every layer has experts.
static std::vector<bool> lightning_layers(const HuggingFaceFields& fields, std::int64_t count) {
  std::vector<bool> lightning;
  const auto types = fields.json.find("attn_type_list"), names = fields.json.find("layer_types");
  if (types)
    for (const JsonValue& item : types->items()) lightning.push_back(item.integer(0, 1) == 0);
  else if (names)
    for (const JsonValue& item : names->items())
      lightning.push_back(item.one_of({"linear_attention", "full_attention"}) ==
                          "linear_attention");
  else
    lightning.assign(static_cast<std::size_t>(count), false);
  if (static_cast<std::int64_t>(lightning.size()) != count)
    (types ? *types : *names)
        .fail(fmt::format("one type for each of the {} layers", count),
              fmt::format("{} types", lightning.size()));
  return lightning;
}

// Defaults: no shared expert, no bias of the router, no norms of queries and keys, no MTP modules.
Model read_minimax(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  Mixer softmax = read_grouped_attention(fields, model.hidden);
  softmax.qk_norm = fields.flag("use_qk_norm", false);
  Ffn experts = gated_experts(fields, "intermediate_size", "num_local_experts");
  experts.shared_width = fields.optional("shared_intermediate_size", 0);
  experts.router_bias = fields.flag("use_routing_bias", false);
  const std::int64_t count = fields.layers();
  const std::vector<bool> lightning = lightning_layers(fields, count);
  for (std::size_t i = 0; i < lightning.size(); ++i)
    append_layer(model,
                 {.mixer = lightning[i] ? lightning_attention(softmax) : softmax, .ffn = experts});
  model.mtp_layers = fields.flag("use_mtp", false) ? fields.optional("num_mtp_modules", 1) : 0;
  if (std::find(lightning.begin(), lightning.end(), true) != lightning.end())
    model.assumptions.push_back(
        "Lightning attention is taken as a Mamba-2 layer with as many groups as heads.");
  return model;
}

// Defaults: head_dim 64, attention_bias true, sliding_window 128 on even layers. Attention sinks
// and biases in router and experts.
Model read_gpt_oss(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  LayerClass layer;
  layer.mixer = read_grouped_attention(fields, model.hidden, 64);
  layer.mixer.qkv_bias = layer.mixer.out_bias = fields.flag("attention_bias", true);
  layer.mixer.sinks = true;
  layer.ffn = gated_experts(fields, "intermediate_size", "num_local_experts");
  layer.ffn.bias = layer.ffn.router_bias = true;
  const std::int64_t window = fields.nullable("sliding_window", 128);
  const auto even = [](std::int64_t i) { return i % 2 == 0; };
  for (bool windowed : fields.windowed(fields.layers(), even)) {
    layer.mixer.window = windowed ? window : 0;
    append_layer(model, layer);
  }
  return model;
}

// Defaults: attention_chunk_size 8192 on all but every fourth layer (no_rope_layers, 0 where a
// layer sees everything), interleave_moe_layer_step 1, one shared expert as wide as a routed one.
// The query-key norm has no weights.
Model read_llama4(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  const std::int64_t count = fields.layers();
  LayerClass layer;
  layer.mixer = read_grouped_attention(fields, model.hidden, 128);
  layer.mixer.qkv_bias = layer.mixer.out_bias = fields.flag("attention_bias", false);
  Ffn experts = gated_experts(fields, "intermediate_size", "num_local_experts");
  experts.shared_width = experts.width;
  std::vector<bool> chunked = fields.windowed(count, [](std::int64_t i) { return i % 4 != 3; });
  const auto rope = fields.json.find("no_rope_layers");
  if (rope && !fields.json.find("layer_types") && !rope->items().empty()) {
    const std::vector<JsonValue> items = rope->items();
    if (items.size() != chunked.size()) rope->fail(fmt::format("{} entries", count));
    for (std::size_t i = 0; i < items.size(); ++i) chunked[i] = items[i].integer(0, 1) == 1;
  }
  const std::int64_t chunk = fields.nullable("attention_chunk_size", 8192);
  const std::int64_t step =
      std::max<std::int64_t>(1, fields.optional("interleave_moe_layer_step", 1));
  std::vector<bool> sparse;
  for (std::int64_t i = 0; i < count; ++i) sparse.push_back((i + 1) % step == 0);
  if (const auto list = fields.json.find("moe_layers")) sparse = listed_layers(*list, count);
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    layer.mixer.window = chunked[i] ? chunk : 0;
    layer.ffn = sparse[i] ? experts : gated_dense(fields, "intermediate_size_mlp");
    append_layer(model, layer);
  }
  return model;
}

// hybrid_override_pattern spells the layers: M is Mamba-2, * attention, - dense, E experts.
// Defaults: head_dim 128, mamba_head_dim 64, ssm_state_size 128, n_groups 8, conv_kernel 4, no
// biases.
Model read_nemotron_h(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  model.position = PositionKind::none;
  const Mixer no_mixer = {.kind = MixerKind::none, .qk_dim = 0, .v_dim = 0};
  Mixer mamba = {.kind = MixerKind::mamba2,
                 .heads = fields.required("mamba_num_heads"),
                 .qk_dim = 0,
                 .v_dim = fields.optional("mamba_head_dim", 64)};
  mamba.state = fields.optional("ssm_state_size", 128);
  mamba.groups = fields.optional("n_groups", 8);
  mamba.conv = fields.optional("conv_kernel", 4);
  mamba.inner = mamba.heads * mamba.v_dim;
  const std::int64_t head_dim = fields.optional("attention_head_dim", 128);
  const Mixer attention = read_grouped_attention(fields, model.hidden, head_dim);
  const Activation activation = fields.plain("mlp_hidden_act", "relu2");

  const JsonValue pattern = fields.json.at("hybrid_override_pattern");
  const std::string text = pattern.text();
  if (static_cast<std::int64_t>(text.size()) != fields.layers()) {
    pattern.fail(fmt::format("num_hidden_layers {} letters", fields.layers()),
                 fmt::format("{} letters", text.size()));
  }
  for (char letter : text) {
    LayerClass layer{.mixer = no_mixer, .ffn = {.kind = FfnKind::none}, .norms = 1};
    switch (letter) {
      case 'M':
        layer.mixer = mamba;
        break;
      case '*':
        layer.mixer = attention;
        break;
      case '-':
        layer.ffn = {.activation = activation, .width = fields.required("intermediate_size")};
        break;
      case 'E':
        layer.ffn = {.kind = FfnKind::moe,
                     .activation = activation,
                     .width = fields.required("moe_intermediate_size"),
                     .experts = fields.required("n_routed_experts"),
                     .topk = fields.required("num_experts_per_tok"),
                     .shared_width = fields.optional("moe_shared_expert_intermediate_size", 0),
                     .router_bias = true,
                     .latent = fields.optional("moe_latent_size", 0)};
        break;
      default:
        pattern.fail("letters M, *, - and E", fmt::format("\"{}\"", letter));
    }
    append_layer(model, layer);
  }
  return model;
}

}  // namespace orrery
