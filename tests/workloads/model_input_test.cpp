// SPDX-License-Identifier: Apache-2.0
// Tests that a config.json says what it is taken to say: near misses, impossible sizes and families
// that are not modelled are errors.
#include <catch2/catch.hpp>
#include <set>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "workloads/model/model.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

const std::filesystem::path source_dir = ORRERY_SOURCE_DIR;
const std::filesystem::path catalog = source_dir / "workloads/catalog/models";

SortedJson config(const std::string& name) {
  return JsonValue::load(source_dir / "tests/workloads/configs" / (name + ".json")).raw();
}

std::string error_of(const SortedJson& json) {
  try {
    return "read: " + read_hugging_face_config(JsonValue::from(json, "config.json")).name;
  } catch (const Error& error) {
    return error.message();
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a misspelt optional key is an error that names the key") {
  SortedJson json = config("llama3-8b");
  json["num_key_value_head"] = json["num_key_value_heads"];
  json.erase("num_key_value_heads");
  const std::string error = error_of(json);
  INFO(error);
  CHECK(has(error, "num_key_value_head:"));
  CHECK(has(error, "did you mean \"num_key_value_heads\"?"));
}

TEST_CASE("no more layers can be dense than there are") {
  SortedJson json = config("deepseek-v3");
  json["first_k_dense_replace"] = 200;
  CHECK(has(error_of(json), "first_k_dense_replace: found 200; expected at most 61"));
  SortedJson glm = config("glm-4.5");
  glm["first_k_dense_replace"] = 200;
  CHECK(has(error_of(glm), "at most 92"));
}

TEST_CASE("families that are known and not modelled are refused by name, with the reason") {
  for (const char* type : {"kimi_linear", "granitemoehybrid", "jamba"}) {
    const std::string error = error_of({{"model_type", type}});
    INFO(error);
    CHECK(has(error, type));
    CHECK(has(error, "not modelled yet"));
  }
}

SortedJson minimax_m2() {
  return {{"model_type", "minimax_m2"},       {"hidden_size", 3072},
          {"num_hidden_layers", 62},          {"num_attention_heads", 48},
          {"num_key_value_heads", 8},         {"head_dim", 128},
          {"intermediate_size", 1536},        {"num_local_experts", 256},
          {"num_experts_per_tok", 8},         {"use_qk_norm", true},
          {"use_routing_bias", true},         {"vocab_size", 200064},
          {"max_position_embeddings", 196608}};
}

TEST_CASE("MiniMax is read, with softmax layers and with lightning attention") {
  const auto total = [](const SortedJson& json) {
    const Model model = read_hugging_face_config(JsonValue::from(json, "config.json"));
    return static_cast<double>(count_parameters(model).total);
  };
  // MiniMax-M2: 230B in all.
  CHECK(total(minimax_m2()) == Approx(230e9).epsilon(0.01));
  // MiniMax-Text-01: 456B in all, seven lightning layers to one of softmax.
  SortedJson text = minimax_m2();
  text.update({{"model_type", "minimax_text_01"},
               {"hidden_size", 6144},
               {"num_hidden_layers", 80},
               {"num_attention_heads", 64},
               {"intermediate_size", 9216},
               {"num_local_experts", 32},
               {"num_experts_per_tok", 2}});
  SortedJson types = SortedJson::array();
  for (int i = 0; i < 80; ++i) types.push_back(i % 8 == 7 ? 1 : 0);
  text["attn_type_list"] = types;
  CHECK(total(text) == Approx(456e9).epsilon(0.005));
  text["attn_type_list"].elements().pop_back();
  CHECK(has(error_of(text), "one type for each of the 80 layers"));
}

TEST_CASE("names of repositories are of one model each") {
  std::set<std::string> seen;
  for (const std::string& name : model_names(catalog)) {
    const JsonValue file = JsonValue::load(catalog / (name + ".json"));
    const auto aliases = file.find("aliases");
    if (!aliases) continue;
    for (const JsonValue& alias : aliases->items()) {
      INFO(alias.text());
      CHECK(seen.insert(alias.text()).second);
      CHECK(load_model(alias.text(), catalog).name == name);
    }
  }
  CHECK(seen.size() > 80);
}

}  // namespace
}  // namespace orrery
