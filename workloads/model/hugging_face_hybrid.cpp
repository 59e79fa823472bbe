// SPDX-License-Identifier: Apache-2.0
// Knows the Hugging Face configs of models whose mixers serving engines run: gated delta nets and
// compressed attention.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/model/hugging_face_config.h"

namespace orrery {
namespace {

// Which layers have full attention: those of layer_types, else every full_attention_interval-th.
std::vector<bool> full_attention_layers(const HuggingFaceFields& fields, std::int64_t count) {
  std::vector<bool> full;
  if (const auto types = fields.json.find("layer_types")) {
    for (const JsonValue& item : types->items())
      full.push_back(item.one_of({"linear_attention", "full_attention"}) == "full_attention");
    if (static_cast<std::int64_t>(full.size()) != count)
      types->fail(fmt::format("one type for each of the {} layers", count),
                  fmt::format("{} types", full.size()));
    return full;
  }
  const std::int64_t every =
      std::max<std::int64_t>(1, fields.optional("full_attention_interval", 4));
  for (std::int64_t i = 0; i < count; ++i) full.push_back((i + 1) % every == 0);
  return full;
}

// Tokens that a key stands for in each layer: 0 is a window alone.
std::vector<std::int64_t> compress_ratios(const HuggingFaceFields& fields, std::int64_t count) {
  const JsonValue list = fields.json.at("compress_ratios");
  std::vector<std::int64_t> ratios;
  for (const JsonValue& item : list.items()) ratios.push_back(item.integer(0, 1 << 20));
  // Modules of multi-token prediction may be listed behind the layers.
  if (static_cast<std::int64_t>(ratios.size()) < count)
    list.fail(fmt::format("one ratio for each of the {} layers", count),
              fmt::format("{} ratios", ratios.size()));
  ratios.resize(static_cast<std::size_t>(count));
  return ratios;
}

}  // namespace

// Defaults: head_dim 256, gated attention with query-key norm, 16 key heads and 32 value heads of
// 128 elements in linear layers, convolutions of 4 tokens; every fourth layer has full attention. A
// gate on the shared expert. Files without experts are dense.
Model read_qwen_hybrid(const HuggingFaceFields& fields) {
  Model model = start_model(fields, fields.required("hidden_size"), false);
  Mixer full = read_grouped_attention(fields, model.hidden, 256);
  full.qk_norm = true;
  full.out_gate = fields.flag("attn_output_gate", true);
  full.qkv_bias = full.out_bias = fields.flag("attention_bias", false);
  Mixer linear{.kind = MixerKind::gated_delta,
               .heads = fields.optional("linear_num_value_heads", 32),
               .qk_dim = 0,
               .v_dim = fields.optional("linear_value_head_dim", 128),
               .state = fields.optional("linear_key_head_dim", 128),
               .groups = fields.optional("linear_num_key_heads", 16),
               .conv = fields.optional("linear_conv_kernel_dim", 4)};
  linear.inner = linear.heads * linear.v_dim;
  Ffn ffn;
  ffn.activation = fields.gated("hidden_act", "silu");
  if (fields.optional("num_experts", 0) > 0) {
    ffn.kind = FfnKind::moe;
    ffn.width = fields.required("moe_intermediate_size");
    ffn.experts = fields.required("num_experts");
    ffn.topk = fields.required("num_experts_per_tok");
    ffn.shared_width = fields.optional("shared_expert_intermediate_size", 0);
    ffn.shared_gate = ffn.shared_width > 0;
  } else {
    ffn.width = fields.required("intermediate_size");
  }
  for (const bool is_full : full_attention_layers(fields, fields.layers()))
    append_layer(model, {.mixer = is_full ? full : linear, .ffn = ffn});
  model.mtp_layers = fields.optional("mtp_num_hidden_layers", 0);
  return model;
}

// Defaults: heads of 512 with 64 rotary elements, an indexer of 64 heads of 128, a window of 128.
// Layers with a small compress ratio have the indexer. Every layer has experts.
Model read_deepseek_v4(const HuggingFaceFields& fields) {
  constexpr std::int64_t chosen_below = 16;  // ratios of released models: 4 with indexer, 128
  Model model = start_model(fields, fields.required("hidden_size"), false);
  Mixer m{.kind = MixerKind::mla};
  m.heads = m.kv_heads = fields.required("num_attention_heads");
  m.qk_dim = m.v_dim = fields.optional("head_dim", 512);
  m.kv_heads = m.heads;
  m.q_lora = fields.required("q_lora_rank");
  m.rope_dim = fields.optional("qk_rope_head_dim", 64);
  m.kv_lora = m.qk_dim - m.rope_dim;
  m.window = fields.optional("sliding_window", 128);
  m.out_lora = fields.required("o_lora_rank");
  m.out_groups = fields.required("o_groups");
  Ffn experts;
  experts.kind = FfnKind::moe;
  experts.activation = fields.gated("hidden_act", "silu");
  experts.width = fields.required("moe_intermediate_size");
  experts.experts = fields.required("n_routed_experts");
  experts.topk = fields.required("num_experts_per_tok");
  experts.shared_width = fields.optional("n_shared_experts", 1) * experts.width;
  experts.router_bias = true;
  for (const std::int64_t ratio : compress_ratios(fields, fields.layers())) {
    Mixer layer = m;
    layer.compress = ratio;
    if (ratio > 0 && ratio < chosen_below) {
      layer.index_heads = fields.optional("index_n_heads", 64);
      layer.index_dim = fields.optional("index_head_dim", 128);
      layer.index_topk = fields.required("index_topk");
    }
    append_layer(model, {.mixer = layer, .ffn = experts});
  }
  model.mtp_layers = fields.optional("num_nextn_predict_layers", 0);
  model.assumptions.push_back("Hyper-connections are left out.");
  return model;
}

}  // namespace orrery
