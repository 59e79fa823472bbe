// SPDX-License-Identifier: Apache-2.0
// Knows how a Hugging Face config.json's fields are read: what is required, what defaults apply.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/model/model.h"

namespace orrery {

// A config.json object (or its nested text_config). Unknown keys are ignored: such files hold many
// that say nothing about shapes; but not those that are nearly spelt like one that is read. A key
// of the wrong type is an Error.
struct HuggingFaceFields {
  JsonValue json;
  // Keys that were asked for: one that stands there misspelt would silently be a default.
  std::shared_ptr<std::set<std::string>> asked = std::make_shared<std::set<std::string>>();

  // A size of at least 1; Error when missing or null.
  std::int64_t required(std::string_view key) const;
  // A size of at least 0; `fallback` when missing or null.
  std::int64_t optional(std::string_view key, std::int64_t fallback) const;
  // `absent` when missing, 0 when null: sliding_window and q_lora_rank mean "off" by null.
  std::int64_t nullable(std::string_view key, std::int64_t absent) const;
  bool flag(std::string_view key, bool fallback) const;
  std::int64_t layers(std::string_view key = "num_hidden_layers") const;

  // "layer_types" where the file has it: true for layers that see a window or a chunk only.
  // Otherwise `rule(layer)`.
  template <class Rule>
  std::vector<bool> windowed(std::int64_t count, Rule rule) const {
    if (json.find("layer_types")) return layer_types(count);
    std::vector<bool> result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(rule(i));
    return result;
  }
  std::vector<bool> layer_types(std::int64_t count) const;
  // How many leading layers have no experts: at most all `count` of them.
  std::int64_t dense_layers(std::int64_t count, std::int64_t fallback) const;
  // Error that names the key that was asked for, where the file has none of that name but one that
  // is a letter or two away.
  void refuse_near_misses() const;

  // hidden_act (or `key`) of a gated network ("silu": swiglu) or of a plain one.
  Activation gated(std::string_view key, std::string_view fallback) const;
  Activation plain(std::string_view key, std::string_view fallback) const;
};

// Fields that all families share: vocab_size, max_position_embeddings, tie_word_embeddings.
Model start_model(const HuggingFaceFields& fields, std::int64_t hidden, bool tied_by_default);

// num_attention_heads, num_key_value_heads (default: as many), head_dim (default: `head_dim`, or
// hidden / heads when 0).
Mixer read_grouped_attention(const HuggingFaceFields& fields, std::int64_t hidden,
                             std::int64_t head_dim = 0);

// The families, by how their layers are built; name and title are filled in by the caller.
Model read_llama_like(const HuggingFaceFields& fields, std::string_view type);  // and mistral, phi3
Model read_qwen(const HuggingFaceFields& fields, std::string_view type);
Model read_gemma(const HuggingFaceFields& fields, std::string_view type);
Model read_nemotron(const HuggingFaceFields& fields);
Model read_nemotron_h(const HuggingFaceFields& fields);
Model read_gpt2(const HuggingFaceFields& fields);
Model read_gpt_neox(const HuggingFaceFields& fields);
Model read_opt(const HuggingFaceFields& fields);
Model read_bloom(const HuggingFaceFields& fields);
Model read_falcon(const HuggingFaceFields& fields);
Model read_mixtral(const HuggingFaceFields& fields);
Model read_grok(const HuggingFaceFields& fields);
Model read_deepseek(const HuggingFaceFields& fields, std::string_view type);  // and kimi_k2
Model read_glm4_moe(const HuggingFaceFields& fields);
Model read_minimax(const HuggingFaceFields& fields);
Model read_gpt_oss(const HuggingFaceFields& fields);
Model read_llama4(const HuggingFaceFields& fields);
Model read_qwen_hybrid(const HuggingFaceFields& fields);  // qwen3_next, qwen3_5
Model read_deepseek_v4(const HuggingFaceFields& fields);

}  // namespace orrery
