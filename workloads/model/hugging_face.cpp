// SPDX-License-Identifier: Apache-2.0
// Finds the reader of a Hugging Face config.json, and reads the fields that all of them share.
#include <fmt/format.h>

#include <filesystem>

#include "sim/base/errors/check.h"
#include "sim/base/errors/spelling.h"
#include "sim/base/json/tree.h"
#include "sim/base/text/enum_names.h"
#include "workloads/model/hugging_face_config.h"

namespace orrery {
namespace {

enum class ConfigType : std::uint8_t {
  llama,
  mistral,
  phi3,
  mixtral,
  qwen2,
  qwen2_moe,
  qwen3,
  qwen3_moe,
  gemma,
  gemma2,
  gemma3,
  gemma3_text,
  nemotron,
  nemotron_h,
  gpt2,
  gpt_neox,
  opt,
  bloom,
  falcon,
  grok,
  grok_1,
  deepseek_v2,
  deepseek_v3,
  kimi_k2,
  glm4_moe,
  gpt_oss,
  llama4,
  llama4_text,
  minimax,
  minimax_text_01,
  minimax_m1,
  minimax_m2,
  qwen3_next,
  qwen3_5,
  qwen3_5_moe,
  deepseek_v32,
  deepseek_v4,
  glm_moe_dsa,
  glm4_moe_lite,
  kimi_k25,
};
constexpr auto type_text = enum_names<ConfigType>({
    "llama",       "mistral",     "phi3",          "mixtral",     "qwen2",       "qwen2_moe",
    "qwen3",       "qwen3_moe",   "gemma",         "gemma2",      "gemma3",      "gemma3_text",
    "nemotron",    "nemotron_h",  "gpt2",          "gpt_neox",    "opt",         "bloom",
    "falcon",      "grok",        "grok-1",        "deepseek_v2", "deepseek_v3", "kimi_k2",
    "glm4_moe",    "gpt_oss",     "llama4",        "llama4_text", "minimax",     "minimax_text_01",
    "minimax_m1",  "minimax_m2",  "qwen3_next",    "qwen3_5",     "qwen3_5_moe", "deepseek_v32",
    "deepseek_v4", "glm_moe_dsa", "glm4_moe_lite", "kimi_k25",
});

// Types whose layers are known by name and not modelled, and what they have.
struct NotModelled {
  std::string_view type, what;
};
constexpr NotModelled not_modelled[] = {
    {"kimi_linear", "layers of Kimi delta attention, whose gate is as wide as a head"},
    {"granitemoehybrid", "Mamba-2 and attention layers that each have experts"},
    {"jamba", "layers of Mamba-1"},
};

ConfigType type_at(const JsonValue& at) {
  const std::string found = at.text();
  for (const NotModelled& other : not_modelled)
    if (found == other.type)
      at.fail("a model_type that is modelled",
              fmt::format("\"{}\", which has {}: not modelled yet", found, other.what));
  return type_text.from(at);
}

Model read_type(const HuggingFaceFields& fields, ConfigType type) {
  const std::string_view name = type_text[type];
  switch (type) {
    case ConfigType::llama:
    case ConfigType::mistral:
    case ConfigType::phi3:
      return read_llama_like(fields, name);
    case ConfigType::qwen2:
    case ConfigType::qwen2_moe:
    case ConfigType::qwen3:
    case ConfigType::qwen3_moe:
      return read_qwen(fields, name);
    case ConfigType::gemma:
    case ConfigType::gemma2:
    case ConfigType::gemma3:
    case ConfigType::gemma3_text:
      return read_gemma(fields, name);
    case ConfigType::mixtral:
      return read_mixtral(fields);
    case ConfigType::nemotron:
      return read_nemotron(fields);
    case ConfigType::nemotron_h:
      return read_nemotron_h(fields);
    case ConfigType::gpt2:
      return read_gpt2(fields);
    case ConfigType::gpt_neox:
      return read_gpt_neox(fields);
    case ConfigType::opt:
      return read_opt(fields);
    case ConfigType::bloom:
      return read_bloom(fields);
    case ConfigType::falcon:
      return read_falcon(fields);
    case ConfigType::grok:
    case ConfigType::grok_1:
      return read_grok(fields);
    case ConfigType::deepseek_v2:
    case ConfigType::deepseek_v3:
    case ConfigType::deepseek_v32:
    case ConfigType::glm_moe_dsa:
    case ConfigType::glm4_moe_lite:
    case ConfigType::kimi_k2:
    case ConfigType::kimi_k25:
      return read_deepseek(fields, name);
    case ConfigType::glm4_moe:
      return read_glm4_moe(fields);
    case ConfigType::gpt_oss:
      return read_gpt_oss(fields);
    case ConfigType::minimax:
    case ConfigType::minimax_text_01:
    case ConfigType::minimax_m1:
    case ConfigType::minimax_m2:
      return read_minimax(fields);
    case ConfigType::qwen3_next:
    case ConfigType::qwen3_5:
    case ConfigType::qwen3_5_moe:
      return read_qwen_hybrid(fields);
    case ConfigType::deepseek_v4:
      return read_deepseek_v4(fields);
    case ConfigType::llama4:
    case ConfigType::llama4_text:
      return read_llama4(fields);
  }
  fields.json.fail("a known model_type");
}

std::string name_of(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string stem = path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

}  // namespace

std::int64_t HuggingFaceFields::required(std::string_view key) const {
  asked->emplace(key);
  return json.at(key).integer(1, max_model_size);
}

std::int64_t HuggingFaceFields::optional(std::string_view key, std::int64_t fallback) const {
  asked->emplace(key);
  const auto value = json.find(key);
  return value ? value->integer(0, max_model_size) : fallback;
}

std::int64_t HuggingFaceFields::nullable(std::string_view key, std::int64_t absent) const {
  asked->emplace(key);
  return json.has(key) ? optional(key, 0) : absent;
}

bool HuggingFaceFields::flag(std::string_view key, bool fallback) const {
  asked->emplace(key);
  const auto value = json.find(key);
  return value ? value->boolean() : fallback;
}

std::int64_t HuggingFaceFields::layers(std::string_view key) const {
  asked->emplace(key);
  return json.at(key).integer(1, max_model_layers);
}

std::int64_t HuggingFaceFields::dense_layers(std::int64_t count, std::int64_t fallback) const {
  constexpr std::string_view key = "first_k_dense_replace";
  const std::int64_t first = optional(key, fallback);
  if (first > count)
    json.at(key).fail(fmt::format("at most {}, the number of layers", count),
                      fmt::format("{}", first));
  return first;
}

void HuggingFaceFields::refuse_near_misses() const {
  constexpr std::size_t near = 2, shortest = 8;
  for (const auto& [name, value] : json.members()) {
    if (asked->contains(name) || name.size() < shortest) continue;
    for (const std::string& key : *asked)
      if (!json.raw().contains(key) && edit_distance(name, key) <= near)
        throw Error({.file = json.file(),
                     .path = value.path(),
                     .found = "a key that says nothing of a model",
                     .expected = "a key that is read",
                     .nearest = key});
  }
}

std::vector<bool> HuggingFaceFields::layer_types(std::int64_t count) const {
  const JsonValue list = json.at("layer_types");
  std::vector<bool> result;
  for (const JsonValue& item : list.items()) {
    const std::string kind =
        item.one_of({"full_attention", "sliding_attention", "chunked_attention"});
    result.push_back(kind != "full_attention");
  }
  if (static_cast<std::int64_t>(result.size()) != count) {
    list.fail(fmt::format("one type for each of the {} layers", count),
              fmt::format("{} types", result.size()));
  }
  return result;
}

Activation HuggingFaceFields::gated(std::string_view key, std::string_view fallback) const {
  const auto value = json.find(key);
  const std::string name = value ? value->text() : std::string(fallback);
  if (name == "silu" || name == "swish") return Activation::swiglu;
  if (name.starts_with("gelu")) return Activation::geglu;
  value->fail("the activation of a gated network: silu, swish or gelu...");
}

Activation HuggingFaceFields::plain(std::string_view key, std::string_view fallback) const {
  const auto value = json.find(key);
  const std::string name = value ? value->text() : std::string(fallback);
  if (name == "relu") return Activation::relu;
  if (name == "relu2" || name == "squared-relu") return Activation::squared_relu;
  if (name.starts_with("gelu")) return Activation::gelu;
  value->fail("the activation of a plain network: relu, relu2 or gelu...");
}

Model start_model(const HuggingFaceFields& fields, std::int64_t hidden, bool tied_by_default) {
  Model model;
  model.hidden = hidden;
  model.vocab = fields.required("vocab_size");
  model.max_context = fields.optional("max_position_embeddings", 0);
  model.tied_embeddings = fields.flag("tie_word_embeddings", tied_by_default);
  return model;
}

Mixer read_grouped_attention(const HuggingFaceFields& fields, std::int64_t hidden,
                             std::int64_t head_dim) {
  Mixer m;
  m.heads = fields.required("num_attention_heads");
  m.kv_heads = fields.optional("num_key_value_heads", m.heads);
  if (head_dim == 0) {
    if (!fields.json.find("head_dim") && hidden % m.heads != 0) {
      fields.json.at("num_attention_heads")
          .fail(fmt::format("a head_dim, or heads that divide hidden_size {}", hidden));
    }
    head_dim = hidden / m.heads;
  }
  m.qk_dim = m.v_dim = fields.optional("head_dim", head_dim);
  return m;
}

Model read_hugging_face_config(const JsonValue& file) {
  const ConfigType type = type_at(file.at("model_type"));
  // Multimodal files keep the language model's fields apart; the flag of tying can stand outside.
  const auto nested = file.find("text_config");
  if (nested && !nested->is_object()) nested->fail("an object with the language model's fields");
  const HuggingFaceFields fields{nested ? *nested : file};
  Model model = read_type(fields, type);
  fields.refuse_near_misses();
  if (nested && !nested->find("tie_word_embeddings")) {
    if (const auto tied = file.find("tie_word_embeddings")) model.tied_embeddings = tied->boolean();
  }
  // A config that stands inline brings its name: it has no file that would tell it.
  const auto name = file.find("name");
  model.name = name ? name->text() : name_of(file.file());
  model.title = model.name;
  model.family = type_text[type];
  model.source = file.file();
  check_model(model, file);
  return model;
}

}  // namespace orrery
