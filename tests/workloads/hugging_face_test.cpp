// SPDX-License-Identifier: Apache-2.0
// Holds the config.json reader to the catalogue: a published config gives the catalogue's model.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "workloads/model/model.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

const std::filesystem::path source_dir = ORRERY_SOURCE_DIR;
const std::filesystem::path catalog = source_dir / "workloads/catalog/models";
const std::filesystem::path configs = source_dir / "tests/workloads/configs";

SortedJson config(const std::string& name) {
  return JsonValue::load(configs / (name + ".json")).raw();
}

Model read(const SortedJson& json) {
  return read_hugging_face_config(JsonValue::from(json, "config.json"));
}

std::string error_of(const SortedJson& json) {
  try {
    return "read: " + std::to_string(read(json).layer_count());
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace

TEST_CASE("config.json of a known model gives the catalogue's model") {
  int families = 0;
  std::string last;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    INFO(name);
    const Model known = load_model(name, catalog);
    const Model model = load_model((configs / (name + ".json")).string(), catalog);
    CHECK(same_network(model, known));
    CHECK(count_parameters(model).total == count_parameters(known).total);
    CHECK(model.name == name);
    if (model.family != last) ++families;
    last = model.family;
    if (model.max_context > 0 && model.family != "deepseek_v2") {
      CHECK(model.max_context == known.max_context);
    }
  }
  CHECK(families >= 20);
}

TEST_CASE("missing fields take the defaults of transformers") {
  SortedJson json = config("mistral-7b");
  json.erase("sliding_window");
  CHECK(read(json).layer(0).mixer.window == 4096);
  json["sliding_window"] = nullptr;
  CHECK(read(json).layer(0).mixer.window == 0);
  json.erase("num_key_value_heads");
  CHECK(read(json).layer(0).mixer.kv_heads == 32);

  json = config("gpt-oss-120b");
  json.erase("layer_types");
  CHECK(same_network(read(json), load_model("gpt-oss-120b", catalog)));

  json = config("deepseek-v3");
  json.erase("num_nextn_predict_layers");
  CHECK(read(json).mtp_layers == 0);

  json = config("llama3-8b");
  json["attention_bias"] = json["mlp_bias"] = json["tie_word_embeddings"] = true;
  const Model biased = read(json);
  CHECK(biased.layer(0).mixer.out_bias);
  CHECK(biased.layer(0).ffn.bias);
  CHECK(biased.tied_embeddings);
}

TEST_CASE("sparse and windowed layers follow their lists") {
  SortedJson json = config("qwen3-30b-a3b");
  json["mlp_only_layers"] = {0, 47};
  json["decoder_sparse_step"] = 2;
  Model model = read(json);
  CHECK(model.layer(0).ffn.kind == FfnKind::dense);
  CHECK(model.layer(1).ffn.kind == FfnKind::moe);
  CHECK(model.layer(2).ffn.kind == FfnKind::dense);
  CHECK(model.layer(47).ffn.kind == FfnKind::dense);
  CHECK(model.layer(0).ffn.width == 6144);

  json = config("qwen2.5-7b");
  json["use_sliding_window"] = true;
  json["max_window_layers"] = 20;
  json["sliding_window"] = 4096;
  model = read(json);
  CHECK(model.layer(19).mixer.window == 0);
  CHECK(model.layer(20).mixer.window == 4096);
}

TEST_CASE("the config reader names what is missing or wrong") {
  const auto fails = [](const SortedJson& json, const std::string& words) {
    const std::string message = error_of(json);
    INFO(message);
    CHECK(message.find(words) != std::string::npos);
  };
  SortedJson json = config("llama3-8b");
  json.erase("hidden_size");
  fails(json, "hidden_size");
  json = config("llama3-8b");
  json["model_type"] = "lama";
  fails(json, "llama");
  json["model_type"] = 3;
  fails(json, "model_type");
  json = config("llama3-8b");
  json["num_attention_heads"] = 30;
  fails(json, "4096");
  json["num_attention_heads"] = "32";
  fails(json, "num_attention_heads");
  json = config("llama3-8b");
  json["num_hidden_layers"] = 1e9;
  fails(json, "num_hidden_layers");
  json = config("llama3-8b");
  json["hidden_act"] = "tanh";
  fails(json, "hidden_act");
  json = config("gpt-oss-120b");
  json["num_hidden_layers"] = 35;
  fails(json, "layer_types");
  json = config("nemotron-3-nano");
  json["hybrid_override_pattern"] = "MEX";
  json["num_hidden_layers"] = 3;
  fails(json, "hybrid_override_pattern");
  json = config("gemma3-4b");
  json["text_config"] = 5;
  fails(json, "text_config");
}

}  // namespace orrery
