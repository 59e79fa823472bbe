// SPDX-License-Identifier: Apache-2.0
// Holds the models of the catalogue to their published parameter counts, and the reader to its
// rules.
#include "workloads/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "sim/base/errors/check.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

const std::filesystem::path source_dir = ORRERY_SOURCE_DIR;
const std::filesystem::path folder = source_dir / "workloads/catalog/models";

Model catalog_model(const std::string& name) { return load_model(name, folder); }

// A published figure: a number is exact, text such as "46.7B" is rounded at its last digit.
struct Published {
  double value = 0, unit_of_last_digit = 0;
};

Published published(const JsonValue& at) {
  if (at.is_number()) return {at.number(), 0};
  const std::string text = at.text();
  const double scale = text.back() == 'T' ? 1e12 : 1e9;
  REQUIRE((text.back() == 'T' || text.back() == 'B'));
  const std::string digits = text.substr(0, text.size() - 1);
  const std::size_t point = digits.find('.');
  const auto decimals = point == std::string::npos ? 0 : digits.size() - point - 1;
  return {std::stod(digits) * scale, scale * std::pow(10.0, -static_cast<double>(decimals))};
}

std::string error_of(const std::string& json) {
  try {
    const Model model = read_model(JsonValue::parse(json, "test.json"));
    return "read: " + model.name;
  } catch (const Error& error) {
    return error.message();
  }
}

const std::string small_model = R"({"name": "small", "hidden": 64, "vocab": 100,
  "norm": "rms-norm", "position": "rotary", "tied_embeddings": true, "layers": [
  {"count": 2, "mixer": {"kind": "attention", "heads": 4, "kv_heads": 2, "qk_dim": 16},
   "ffn": {"kind": "dense", "activation": "swiglu", "width": 128}}]})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = small_model;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("every model of the catalogue has its published number of parameters") {
  const std::vector<std::string> names = model_names(folder);
  REQUIRE(names.size() >= 100);
  int exact = 0;
  for (const std::string& name : names) {
    INFO(name);
    const Model model = catalog_model(name);
    const JsonValue entry = load_model_entry(name, folder);
    CHECK(model.name == name);
    CHECK_FALSE(model.title.empty());
    const ParameterCount count = count_parameters(model);
    CHECK(count.active <= count.total);
    CHECK((model.has_experts() ? count.active < count.total : count.active == count.total));
    if (const auto figure = entry.find("published_parameters")) {
      const Published p = published(*figure);
      double counted = static_cast<double>(count.total);
      if (const auto rest = entry.find("left_out")) counted += rest->at("parameters").number();
      if (p.unit_of_last_digit == 0) ++exact;
      const double slack =
          p.unit_of_last_digit == 0 ? 0 : std::max(p.unit_of_last_digit / 2, p.value * 1e-3);
      INFO(fmt::format("counted {:.0f}, published {:.0f}", counted, p.value));
      CHECK(std::abs(counted - p.value) <= slack);
    }
    if (const auto figure = entry.find("published_active")) {
      // Publishers cut this figure off as often as they round it.
      const Published p = published(*figure);
      double active = static_cast<double>(count.active);
      const auto without = entry.find("published_active_without_embedding");
      if (without && without->boolean()) active -= static_cast<double>(count.embedding);
      INFO(fmt::format("active {:.0f}, published {:.0f}", active, p.value));
      CHECK(std::abs(active - p.value) <= p.unit_of_last_digit);
    }
  }
  CHECK(exact >= 60);
}

TEST_CASE("the counts that everyone knows") {
  const std::pair<const char*, std::int64_t> known[] = {
      {"llama3-8b", 8030261248},       {"llama3-70b", 70553706496},
      {"llama3.1-405b", 405853388800}, {"llama2-7b", 6738415616},
      {"llama2-13b", 13015864320},     {"llama2-70b", 68976648192},
      {"mixtral-8x7b", 46702792704},   {"mixtral-8x22b", 140630071296},
      {"qwen2.5-7b", 7615616512},      {"qwen3-30b-a3b", 30532122624},
      {"gpt2-xl", 1557611200},         {"bloom-176b", 176247271424},
      {"deepseek-v3", 671026419200},   {"deepseek-v2", 235741434880},
      {"gpt-oss-120b", 116829156672},  {"gpt-oss-20b", 20914757184},
      {"kimi-k2", 1026408232448},      {"gemma2-27b", 27227128320},
  };
  for (const auto& [name, parameters] : known) {
    INFO(name);
    CHECK(count_parameters(catalog_model(name)).total == parameters);
  }
  CHECK(count_parameters(catalog_model("mixtral-8x7b")).active == 12879925248);
  // DeepSeek-V3's checkpoint stores the MTP module with copies of embedding and head, and a scale
  // for each 128 x 128 block: 684.5 billion values.
  const ParameterCount deepseek = count_parameters(catalog_model("deepseek-v3"));
  const double stored =
      static_cast<double>(deepseek.total + deepseek.mtp + deepseek.embedding + deepseek.head);
  CHECK(stored * (1 + 1.0 / (128 * 128)) == Approx(684.53e9).epsilon(1e-4));
}

TEST_CASE("presets have the size that their name says") {
  for (const char* size : {"10t", "30t", "100t"}) {
    for (const char* kind : {"-dense", "-moe"}) {
      const Model model = catalog_model(std::string(size) + kind);
      const double wanted = std::stod(size) * 1e12;
      INFO(model.name);
      CHECK(static_cast<double>(count_parameters(model).total) == Approx(wanted).epsilon(0.02));
      CHECK_FALSE(model.assumptions.empty());
    }
  }
  const Model dense = catalog_model("500b-dense");
  CHECK(static_cast<double>(count_parameters(dense).total) == Approx(500e9).epsilon(0.02));
  CHECK_FALSE(dense.assumptions.empty());
}

TEST_CASE("sources of models resolve") {
  const JsonValue sources =
      JsonValue::load(source_dir / "hw_models/catalog/sources/workloads.json");
  for (const std::string& name : model_names(folder)) {
    INFO(name);
    const JsonValue source = sources.at(catalog_model(name).source);
    source.expect_only({"title", "address", "date_read", "licence"});
    CHECK_FALSE(source.at("title").text().empty());
    CHECK_FALSE(source.at("address").text().empty());
    CHECK(source.has("date_read"));
  }
}

TEST_CASE("layers of equal shape share a class") {
  const Model deepseek = catalog_model("deepseek-v3");
  CHECK(deepseek.layer_count() == 61);
  REQUIRE(deepseek.classes.size() == 2);
  CHECK(deepseek.layer(2).ffn.kind == FfnKind::dense);
  CHECK(deepseek.layer(3).ffn.kind == FfnKind::moe);
  CHECK(deepseek.mtp_layers == 1);
  CHECK(deepseek.max_experts() == 256);
  const Model gemma = catalog_model("gemma3-27b");
  REQUIRE(gemma.classes.size() == 2);
  CHECK(gemma.layer(4).mixer.window == 1024);
  CHECK(gemma.layer(5).mixer.window == 0);
  const Model hybrid = catalog_model("nemotron-h-56b");
  CHECK(hybrid.layer_count() == 118);
  CHECK(hybrid.classes.size() == 3);
  std::int64_t mamba = 0;
  for (std::int64_t i = 0; i < 118; ++i) mamba += hybrid.layer(i).mixer.kind == MixerKind::mamba2;
  CHECK(mamba == 54);
  CHECK_FALSE(catalog_model("llama3-8b").has_experts());
}

TEST_CASE("parameters split the way parallelism splits them") {
  const Model model = catalog_model("mixtral-8x7b");
  const LayerParameters p = layer_parameters(model, model.layer(0));
  CHECK(p.mixer == 4096 * 4096 * 2 + 2 * 4096 * 1024);
  CHECK(p.ffn == 0);
  CHECK(p.experts == std::int64_t{8} * 3 * 4096 * 14336);
  CHECK(p.active_experts == std::int64_t{2} * 3 * 4096 * 14336);
  CHECK(p.router == 4096 * 8);
  CHECK(p.norms == 2 * 4096);
  const ParameterCount count = count_parameters(model);
  CHECK(count.total == count.embedding + count.head + count.final_norm + 32 * p.total());
}

TEST_CASE("based_on overlays one entry on another") {
  const Model base = catalog_model("llama3-8b"), model = catalog_model("llama3.1-8b");
  CHECK(same_network(base, model));
  CHECK(model.max_context == 131072);
  CHECK(base.max_context == 8192);
  CHECK(model.title == "Llama 3.1 8B");
}

TEST_CASE("model files are read strictly") {
  CHECK(error_of(small_model) == "read: small");
  const auto fails = [](const std::string& json, const std::string& words) {
    const std::string message = error_of(json);
    INFO(message);
    CHECK(message.find(words) != std::string::npos);
  };
  fails(with("\"heads\": 4", "\"head\": 4"), "heads");
  fails(with("\"kv_heads\": 2", "\"kv_heads\": 3"), "4 heads and 3 key-value heads");
  fails(with("\"width\": 128", "\"widht\": 128, \"width\": 128"), "widht");
  fails(with("\"swiglu\"", "\"swigul\""), "swiglu");
  fails(with("\"hidden\": 64", "\"hidden\": 0"), "hidden");
  fails(with("\"hidden\": 64", "\"hidden\": 6.5"), "hidden");
  fails(with("\"count\": 2", "\"count\": 1000000"), "count");
  fails(with("\"vocab\": 100", "\"vocab\": \"100\""), "vocab");
  fails(with("\"width\": 128", "\"width\": 268435456, \"bias\": 3"), "bias");
  fails(with("\"layers\": [", "\"layers\": [], \"x\": ["), "x");
  fails("{}", "name");
  fails("[]", "object");
}

TEST_CASE("sizes that no machine could count are refused") {
  std::string text = with("\"hidden\": 64", "\"hidden\": 268435456");
  text.replace(text.find("\"width\": 128"), 12, "\"width\": 268435456");
  const std::string message = error_of(text);
  INFO(message);
  CHECK(message.find("10^17") != std::string::npos);
}

TEST_CASE("an unknown model names the nearest") {
  try {
    catalog_model("lama3-8b");
    FAIL("read");
  } catch (const Error& error) {
    INFO(error.message());
    CHECK(error.message().find("llama3-8b") != std::string::npos);
  }
  CHECK_THROWS_AS(catalog_model("./no/such/file.json"), Error);
  CHECK_THROWS_AS(catalog_model(folder.string()), Error);
  CHECK_THROWS_AS(catalog_model(""), Error);
  CHECK(catalog_model((folder / "llama3-8b.json").string()).name == "llama3-8b");
}

}  // namespace orrery
