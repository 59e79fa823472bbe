// SPDX-License-Identifier: Apache-2.0
// Reads models from the catalogue's files, and finds them by name or path.
#include "workloads/model/model_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>

#include "sim/base/errors/check.h"
#include "sim/base/errors/spelling.h"
#include "sim/base/json/tree.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Limits of single sizes: far above any model, low enough that no product overflows unnoticed
// before check_model looks at the whole.
std::int64_t size_at(const JsonValue& object, std::string_view key) {
  return object.at(key).integer(1, max_model_size);
}

std::int64_t optional_size(const JsonValue& object, std::string_view key, std::int64_t fallback) {
  const auto value = object.find(key);
  return value ? value->integer(0, max_model_size) : fallback;
}

bool flag_at(const JsonValue& object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->boolean();
}

std::string text_at(const JsonValue& object, std::string_view key, const std::string& fallback) {
  const auto value = object.find(key);
  return value ? value->text() : fallback;
}

Mixer read_attention(const JsonValue& at) {
  at.expect_only({"kind", "heads", "kv_heads", "qk_dim", "v_dim", "window", "qkv_bias", "out_bias",
                  "qk_norm", "sinks", "out_gate"});
  Mixer m;
  m.heads = size_at(at, "heads");
  m.kv_heads = size_at(at, "kv_heads");
  m.qk_dim = size_at(at, "qk_dim");
  m.v_dim = optional_size(at, "v_dim", m.qk_dim);
  m.window = optional_size(at, "window", 0);
  m.qkv_bias = flag_at(at, "qkv_bias");
  m.out_bias = flag_at(at, "out_bias");
  m.qk_norm = flag_at(at, "qk_norm");
  m.sinks = flag_at(at, "sinks");
  m.out_gate = flag_at(at, "out_gate");
  return m;
}

Mixer read_mla(const JsonValue& at) {
  at.expect_only({"kind", "heads", "qk_dim", "v_dim", "q_lora", "kv_lora", "rope_dim", "window",
                  "index_heads", "index_dim", "index_topk", "compress", "out_lora", "out_groups"});
  Mixer m;
  m.kind = MixerKind::mla;
  m.heads = m.kv_heads = size_at(at, "heads");
  m.qk_dim = size_at(at, "qk_dim");
  m.v_dim = size_at(at, "v_dim");
  m.q_lora = optional_size(at, "q_lora", 0);
  m.kv_lora = size_at(at, "kv_lora");
  m.rope_dim = size_at(at, "rope_dim");
  m.window = optional_size(at, "window", 0);
  m.index_heads = optional_size(at, "index_heads", 0);
  m.index_dim = optional_size(at, "index_dim", 0);
  m.index_topk = optional_size(at, "index_topk", 0);
  m.compress = optional_size(at, "compress", 0);
  m.out_lora = optional_size(at, "out_lora", 0);
  m.out_groups = optional_size(at, "out_groups", 0);
  return m;
}

// A mixer that keeps states. Files name its groups and the width of a state as the field does for
// its kind.
Mixer read_states(const JsonValue& at, MixerKind kind, std::string_view groups,
                  std::string_view state) {
  at.expect_only({"kind", "heads", "v_dim", groups, state, "conv"});
  Mixer m;
  m.kind = kind;
  m.heads = size_at(at, "heads");
  m.qk_dim = 0;
  m.v_dim = size_at(at, "v_dim");
  m.groups = size_at(at, groups);
  m.state = size_at(at, state);
  m.conv = size_at(at, "conv");
  m.inner = m.heads * m.v_dim;
  return m;
}

Mixer read_mixer(const JsonValue& at) {
  switch (mixer_kind_text.from(at.at("kind"))) {
    case MixerKind::attention:
      return read_attention(at);
    case MixerKind::mla:
      return read_mla(at);
    case MixerKind::mamba2:
      return read_states(at, MixerKind::mamba2, "groups", "state");
    case MixerKind::gated_delta:
      return read_states(at, MixerKind::gated_delta, "key_heads", "key_dim");
    case MixerKind::none:
      break;
  }
  at.expect_only({"kind"});
  return {.kind = MixerKind::none, .qk_dim = 0, .v_dim = 0};
}

Ffn read_ffn(const JsonValue& at) {
  Ffn f;
  f.kind = ffn_kind_text.from(at.at("kind"));
  if (f.kind == FfnKind::none) {
    at.expect_only({"kind"});
    return f;
  }
  f.activation = activation_text.from(at.at("activation"));
  f.width = size_at(at, "width");
  f.bias = flag_at(at, "bias");
  if (f.kind == FfnKind::dense) {
    at.expect_only({"kind", "activation", "width", "bias"});
    return f;
  }
  at.expect_only({"kind", "activation", "width", "bias", "experts", "topk", "shared_width",
                  "shared_gate", "router_bias", "latent"});
  f.experts = size_at(at, "experts");
  f.topk = size_at(at, "topk");
  f.shared_width = optional_size(at, "shared_width", 0);
  f.shared_gate = flag_at(at, "shared_gate");
  f.router_bias = flag_at(at, "router_bias");
  f.latent = optional_size(at, "latent", 0);
  return f;
}

LayerClass read_layer(const JsonValue& at) {
  at.expect_only({"count", "mixer", "ffn", "norms"});
  LayerClass layer;
  layer.mixer = read_mixer(at.at("mixer"));
  layer.ffn = read_ffn(at.at("ffn"));
  const auto norms = at.find("norms");
  layer.norms = norms ? static_cast<int>(norms->integer(0, 16)) : 2;
  return layer;
}

void limit_layers(const Model& model, std::int64_t more, const JsonValue& at) {
  if (model.layer_count() + more > max_model_layers) {
    at.fail(fmt::format("at most {} layers", max_model_layers),
            fmt::format("{} layers", model.layer_count() + more));
  }
}

// "layers": groups in order, each a layer or a pattern of layers, `count` times.
void read_groups(Model& model, const JsonValue& groups) {
  for (const JsonValue& group : groups.items()) {
    const std::int64_t count = group.at("count").integer(1, max_model_layers);
    std::vector<LayerClass> pattern;
    if (group.has("pattern")) {
      group.expect_only({"count", "pattern"});
      for (const JsonValue& layer : group.at("pattern").items()) {
        pattern.push_back(read_layer(layer));
      }
    } else {
      pattern.push_back(read_layer(group));
    }
    limit_layers(model, count * static_cast<std::int64_t>(pattern.size()), group);
    for (std::int64_t i = 0; i < count; ++i) {
      for (const LayerClass& layer : pattern) append_layer(model, layer);
    }
  }
}

// "classes" names layers with one letter each, "pattern" spells their order (hybrid models).
void read_pattern(Model& model, const JsonValue& classes, const JsonValue& pattern) {
  std::vector<std::pair<std::string, LayerClass>> named;
  std::vector<std::string> names;
  for (const auto& [name, value] : classes.members()) {
    if (name.size() != 1) value.fail("classes named by one letter", name);
    named.emplace_back(name, read_layer(value));
    names.push_back(name);
  }
  const std::string text = pattern.text();
  limit_layers(model, static_cast<std::int64_t>(text.size()), pattern);
  for (char letter : text) {
    const auto found = std::find_if(named.begin(), named.end(),
                                    [&](const auto& entry) { return entry.first[0] == letter; });
    if (found == named.end()) {
      pattern.fail(fmt::format("letters of \"classes\": {}", joined(names, " ")),
                   fmt::format("\"{}\"", letter));
    }
    append_layer(model, found->second);
  }
}

// "checkpoints": for a precision, the parts that its checkpoint keeps in another.
void read_checkpoints(Model& model, const JsonValue& at) {
  for (const auto& [precision, parts] : at.members()) {
    Checkpoint& checkpoint = model.checkpoints.emplace_back();
    checkpoint.precision = precision;
    for (const auto& [name, other] : parts.members()) {
      const auto part = model_part_text.find(name);
      if (!part)
        parts.fail("parts of a layer: " + joined(model_part_text.names(), ", "), in_quotes(name));
      checkpoint.other.push_back({.part = *part, .precision = other.text()});
    }
  }
}

JsonValue resolve_based_on(const JsonValue& entry, const fs::path& folder, int depth) {
  const auto base = entry.find("based_on");
  if (!base) return entry;
  const fs::path file = folder / (base->text() + ".json");
  const std::string name = base->text();
  if (depth == 0) base->fail("a chain of \"based_on\" that ends");
  std::error_code unnameable;  // a name may be longer than a file's can be
  if (name.find('/') != std::string::npos || !fs::exists(file, unnameable)) {
    const std::vector<std::string> names = model_names(folder);
    base->fail("a model of the catalogue (nearest: " + nearest_name(name, names) + ")");
  }
  SortedJson merged = resolve_based_on(JsonValue::load(file), folder, depth - 1).raw();
  for (const auto& [key, value] : entry.raw().items()) {
    if (key != "based_on") merged[key] = value;
  }
  return JsonValue::from(std::move(merged), entry.file());
}

bool looks_like_path(const std::string& name) {
  std::error_code ignored;
  return name.find('/') != std::string::npos || fs::path(name).extension() == ".json" ||
         fs::exists(name, ignored);
}

// The entry that has the name among its aliases, which are the names of repositories of weights.
std::optional<JsonValue> entry_by_alias(const std::string& name, const fs::path& folder) {
  for (const std::string& entry : model_names(folder)) {
    const JsonValue file = JsonValue::load(folder / (entry + ".json"));
    const auto aliases = file.find("aliases");
    if (!aliases) continue;
    for (const JsonValue& alias : aliases->items())
      if (edit_distance(alias.text(), name) == 0) return resolve_based_on(file, folder, 4);
  }
  return std::nullopt;
}

JsonValue model_from_input() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  return JsonValue::parse(text, "standard input");
}

JsonValue model_in_folder(const fs::path& folder) {
  std::error_code ignored;
  const fs::path config = folder / "config.json";
  if (!fs::exists(config, ignored))
    throw Error({.file = folder.string(),
                 .found = "a folder without config.json",
                 .expected = "a Hugging Face config.json in it, or the path of a model file"});
  return JsonValue::load(config);
}

}  // namespace

Model read_model(const JsonValue& file) {
  file.expect_only({"name",
                    "title",
                    "family",
                    "aliases",
                    "source",
                    "assumptions",
                    "published_parameters",
                    "published_active",
                    "published_active_without_embedding",
                    "left_out",
                    "hidden",
                    "vocab",
                    "positions",
                    "max_context",
                    "norm",
                    "position",
                    "tied_embeddings",
                    "embedding_norm",
                    "parallel_block",
                    "mtp_layers",
                    "checkpoints",
                    "layers",
                    "classes",
                    "pattern"});
  Model model;
  model.name = file.at("name").text();
  model.title = text_at(file, "title", model.name);
  model.family = text_at(file, "family", "");
  model.source = text_at(file, "source", "");
  if (const auto assumptions = file.find("assumptions")) {
    for (const JsonValue& sentence : assumptions->items()) {
      model.assumptions.push_back(sentence.text());
    }
  }
  model.hidden = size_at(file, "hidden");
  model.vocab = size_at(file, "vocab");
  model.positions = optional_size(file, "positions", 0);
  model.max_context = optional_size(file, "max_context", 0);
  model.norm = norm_kind_text.from(file.at("norm"));
  model.position = position_kind_text.from(file.at("position"));
  model.tied_embeddings = file.at("tied_embeddings").boolean();
  model.embedding_norm = flag_at(file, "embedding_norm");
  model.parallel_block = flag_at(file, "parallel_block");
  if (const auto mtp = file.find("mtp_layers")) model.mtp_layers = mtp->integer(0, 64);
  if (const auto checkpoints = file.find("checkpoints")) read_checkpoints(model, *checkpoints);
  if (file.has("pattern")) {
    read_pattern(model, file.at("classes"), file.at("pattern"));
  } else {
    read_groups(model, file.at("layers"));
  }
  check_model(model, file);
  return model;
}

JsonValue load_model_entry(const std::string& name, const fs::path& catalog_folder) {
  if (is_inline_entry(name))
    return resolve_based_on(JsonValue::parse(name, "model"), catalog_folder, 4);
  std::error_code ignored;
  const fs::path entry = catalog_folder / (name + ".json");
  if (name.find('/') == std::string::npos && fs::exists(entry, ignored))
    return resolve_based_on(JsonValue::load(entry), catalog_folder, 4);
  if (name == "-") return resolve_based_on(model_from_input(), catalog_folder, 4);
  if (fs::is_directory(name, ignored)) return model_in_folder(name);
  if (!fs::exists(name, ignored))
    if (auto known = entry_by_alias(name, catalog_folder)) return *known;
  if (looks_like_path(name)) return resolve_based_on(JsonValue::load(name), catalog_folder, 4);
  throw Error({.file = "model",
               .found = in_quotes(name),
               .expected = "a name of the catalogue (orrery catalog list model), or the path of a "
                           "model file, a Hugging Face config.json or its folder",
               .nearest = nearest_name(name, model_names(catalog_folder))});
}

Model load_model(const std::string& name, const fs::path& catalog_folder) {
  const JsonValue file = load_model_entry(name, catalog_folder);
  return file.has("model_type") ? read_hugging_face_config(file) : read_model(file);
}

std::vector<std::string> model_names(const fs::path& catalog_folder) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(catalog_folder, missing)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace orrery
