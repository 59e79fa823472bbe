// SPDX-License-Identifier: Apache-2.0
// Tests what launch programs set: that the shipped tables name what the catalogue has, and that a
// question finds the model's recipes, the nearest release's, or the majority's with its spread.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "sim/base/errors/check.h"
#include "sim/base/input_file.h"
#include "sim/base/json/json.h"
#include "tests/base/error_text.h"
#include "tests/base/scratch_folder.h"
#include "workloads/model/model_catalog.h"
#include "workloads/recipes/lookup.h"
#include "workloads/recipes/varies.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

const std::filesystem::path root = ORRERY_SOURCE_DIR;

const RecipeBook& shipped() {
  static const RecipeBook book = load_recipes(root / "workloads/catalog/recipes");
  return book;
}

// A book with three settings; each recipe has a row of its own.
struct Line {
  std::string release, model, device, precision;
  std::vector<std::string> values;
  std::vector<std::string> gpus = {"64"};
};
RecipeBook small_book(const std::vector<Line>& lines) {
  RecipeBook book;
  book.setting_names = {"tp", "dispatcher", "graphs"};
  book.models = {{"a-1", "a", true, {"a-one"}}, {"a-2", "a", true, {}},  {"b-1", "b", true, {}},
                 {"c-1", "c", true, {}},        {"d-1", "d", false, {}}, {"e-1", "e", true, {}}};
  for (const Line& line : lines) {
    const auto model = std::find_if(book.models.begin(), book.models.end(),
                                    [&](const RecipeModel& m) { return m.name == line.model; });
    book.recipes.push_back({.source = book.sources.size(),
                            .model = static_cast<std::size_t>(model - book.models.begin()),
                            .settings = book.settings.size(),
                            .task = "pretrain",
                            .device = line.device,
                            .precision = line.precision,
                            .gpus = line.gpus});
    book.sources.push_back({.stack = "s", .releases = {line.release}, .program = "p"});
    book.settings.push_back(line.values);
  }
  return book;
}

const FoundSetting& setting(const FoundRecipes& found, const std::string& name) {
  for (const FoundSetting& s : found.settings)
    if (s.name == name) return s;
  FAIL("no setting " + name);
  return found.settings.front();
}

std::string error_of(const RecipeBook& book, const RecipeQuestion& question) {
  return error_text([&] { find_recipes(book, question); });
}

TEST_CASE("every shipped recipe has an address, a release of its stack and a known origin") {
  const JsonValue origins = JsonValue::load(root / "hw_models/catalog/sources/stacks.json");
  const auto stacks = root / "workloads/catalog/stacks";
  const std::regex address(R"(https://github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/\S+)");
  REQUIRE(shipped().sources.size() > 400);
  for (const RecipeSource& source : shipped().sources) {
    INFO(source.address);
    CHECK(std::regex_match(source.address, address));
    CHECK((source.base_address.empty() || std::regex_match(source.base_address, address)));
    CHECK(origins.has(source.origin));
    CHECK(source.date.size() == 10);
    for (const std::string& release : source.releases)
      CHECK(!known_release(source.stack + "@" + release, stacks).empty());
  }
  REQUIRE(shipped().recipes.size() > 4000);
  std::set<std::size_t> used;
  for (const Recipe& recipe : shipped().recipes) used.insert(recipe.source);
  CHECK(used.size() == shipped().sources.size());
  for (const RecipeDefault& known : shipped().defaults) {
    CHECK(known.address.starts_with("https://github.com/"));
    const auto& names = shipped().setting_names;
    CHECK(std::find(names.begin(), names.end(), known.setting) != names.end());
  }
}

TEST_CASE("shipped recipes spell models, devices, precisions and tasks as the catalogue does") {
  const auto models = root / "workloads/catalog/models";
  const std::vector<std::string> names = model_names(models);
  std::set<std::string> families, without_entry;
  for (const std::string& name : names) families.insert(load_model(name, models).family);
  for (const RecipeModel& model : shipped().models) {
    INFO(model.name);
    if (std::find(names.begin(), names.end(), model.name) == names.end()) {
      without_entry.insert(model.name);
      continue;
    }
    const Model entry = load_model(model.name, models);
    CHECK(entry.family == model.family);
    CHECK(entry.has_experts() == model.moe);
    for (const std::string& other : model.same_shape)
      CHECK(std::find(names.begin(), names.end(), other) != names.end());
  }
  // A model that gets an entry leaves this list.
  CHECK(without_entry == std::set<std::string>{
                             "bloom-1b3", "bloom-760m", "dbrx", "deepseek-v3-16b", "glm-5.2",
                             "gpt-neo-125m", "nanotron-llama-2.8b", "nanotron-llama-280m",
                             "nanotron-llamoe", "nanotron-qwen", "nanotron-tiny-llama",
                             "nemotron-h-47b", "opt-3b", "qwen3-vl-235b-a22b", "qwen3-vl-30b-a3b",
                             "qwen3.5-vl-122b-a10b", "qwen3.5-vl-35b-a3b", "qwen3.5-vl-397b-a17b"});
  std::set<std::string> devices, precisions, tasks;
  for (const Recipe& recipe : shipped().recipes) {
    devices.insert(recipe.device);
    precisions.insert(recipe.precision);
    tasks.insert(recipe.task);
    REQUIRE((recipe.gpus.empty() || recipe.gpus.size() == recipe.global_batch.size()));
  }
  devices.erase("");
  for (const std::string& device : devices) {
    INFO(device);
    CHECK(std::filesystem::exists(root / "hw_models/catalog/accelerators" / (device + ".json")));
  }
  for (const std::string& precision : precisions)
    CHECK_NOTHROW(precision_from(JsonValue::parse("\"" + precision + "\"", "recipes.csv")));
  for (const std::string& task : tasks) CHECK(task_text.find(task).has_value());
}

TEST_CASE("the page of the catalogue names every setting of recipes, and rows stand once") {
  const std::string page = content_of(root / "workloads/catalog/README.md");
  for (const std::string& name : shipped().setting_names) {
    INFO(name);
    CHECK(page.find("`" + name + "`") != std::string::npos);
  }
  const std::set<std::vector<std::string>> rows(shipped().settings.begin(),
                                                shipped().settings.end());
  CHECK(rows.size() == shipped().settings.size());
}

TEST_CASE("a release has the recipes of the nearest one before it") {
  const RecipeBook book = small_book({{"25.09", "a-1", "x", "bf16", {"1", "old", ""}},
                                      {"25.11", "a-1", "x", "bf16", {"2", "new", ""}},
                                      {"26.02", "a-1", "y", "bf16", {"4", "newest", ""}}});
  const auto value = [&](const std::string& release, const std::string& device) {
    const FoundRecipes found = find_recipes(
        book, {.stack = "s", .release = release, .model = "a-1", .moe = true, .device = device});
    REQUIRE(found.match == RecipeMatch::model);
    return found.release + " " + setting(found, "dispatcher").values.front().value;
  };
  CHECK(value("25.10", "x") == "25.09 old");
  CHECK(value("25.11", "x") == "25.11 new");
  CHECK(value("26.02.01", "x") == "25.11 new");
  CHECK(value("", "x") == "25.11 new");
  CHECK(value("", "") == "26.02 newest");
  CHECK(error_of(book, {.stack = "s", .release = "25.04", .model = "a-1"}).find("25.09 or later") !=
        std::string::npos);
}

TEST_CASE("without recipes of its own a model has those of its shape, then of its family") {
  const RecipeBook book = small_book({{"25.09", "a-1", "x", "bf16", {"1", "one", ""}},
                                      {"25.09", "a-2", "x", "bf16", {"1", "two", ""}},
                                      {"25.09", "b-1", "x", "bf16", {"1", "three", ""}}});
  const auto found = [&](const std::string& model, const std::string& family) {
    return find_recipes(book, {.stack = "s", .model = model, .family = family, .moe = true});
  };
  CHECK(found("a-1", "a").recipes.size() == 1);
  CHECK(found("a-one", "z").match == RecipeMatch::same_shape);
  CHECK(found("a-one", "z").of == "a-1");
  CHECK(found("a-3", "a").match == RecipeMatch::family);
  CHECK(found("a-3", "a").recipes.size() == 2);
  CHECK(found("", "a").match == RecipeMatch::family);
  CHECK(found("z-1", "z").match == RecipeMatch::majority);
}

TEST_CASE("a majority counts families of the same kind, and leaves degrees out") {
  const RecipeBook book = small_book({{"25.09", "a-1", "x", "bf16", {"1", "deepep", ""}},
                                      {"25.09", "a-2", "x", "bf16", {"1", "hybridep", ""}},
                                      {"25.09", "a-2", "x", "mxfp8", {"1", "hybridep", ""}},
                                      {"25.09", "b-1", "x", "bf16", {"1", "hybridep", "none"}},
                                      {"25.09", "c-1", "x", "bf16", {"1", "deepep", ""}},
                                      {"25.09", "d-1", "x", "bf16", {"1", "", "none"}}});
  const FoundRecipes found = find_recipes(book, {.stack = "s", .model = "z", .moe = true});
  CHECK(found.match == RecipeMatch::majority);
  CHECK(found.settings.size() == 2);
  const FoundSetting& dispatcher = setting(found, "dispatcher");
  REQUIRE(dispatcher.values.size() == 2);
  CHECK(dispatcher.families == 3);
  CHECK(dispatcher.values[0].value == "hybridep");
  CHECK(dispatcher.values[0].families == std::vector<std::string>{"a", "b"});
  CHECK(dispatcher.values[0].where == "in 2 of 3 families: a, b");
  CHECK(dispatcher.values[1].where == "in 1 of 3 families: c");
  CHECK(setting(found, "graphs").values[0].where == "in 1 of 1 family: b");
  const FoundRecipes dense = find_recipes(book, {.stack = "s", .model = "z"});
  CHECK(dense.recipes.size() == 1);
}

TEST_CASE("where a value holds is said by the fewest properties that decide it") {
  const RecipeBook book = small_book({{"25.09", "a-1", "x", "bf16", {}},
                                      {"25.09", "a-1", "x", "mxfp8", {}},
                                      {"25.09", "a-1", "y", "bf16", {}},
                                      {"25.09", "a-1", "y", "mxfp8", {}, {"64", "128"}},
                                      {"25.09", "a-1", "y", "mxfp8", {}, {"512"}}});
  const std::vector<std::size_t> all = {0, 1, 2, 3, 4};
  using Where = std::vector<std::string>;
  CHECK(where_values_hold(book, all, {0, 0, 0, 0, 0}, 1) == Where{""});
  CHECK(where_values_hold(book, all, {0, 0, 1, 1, 1}, 2) == Where{"x", "y"});
  CHECK(where_values_hold(book, all, {0, 1, 0, 1, 1}, 2) == Where{"bf16", "mxfp8"});
  CHECK(where_values_hold(book, all, {0, 0, 0, 1, 1}, 2)[1] == "y (mxfp8)");
  CHECK(where_values_hold(book, all, {0, 0, 0, 0, 1}, 2)[1] == "512 GPUs");
  CHECK(where_values_hold(book, {1, 3}, {0, 1}, 2) == Where{"x", "y"});
  const RecipeBook sizes = small_book({{"25.09", "a-1", "x", "bf16", {}, {"1024", "64"}},
                                       {"25.09", "a-1", "x", "bf16", {}, {"512", "128"}}});
  CHECK(where_values_hold(sizes, {0, 1}, {0, 1}, 2) ==
        Where{"64 GPUs, 1024 GPUs", "128 GPUs, 512 GPUs"});
  const RecipeBook same = small_book({{"25.09", "a-1", "x", "bf16", {}},
                                      {"25.09", "a-1", "x", "bf16", {}},
                                      {"25.09", "a-1", "x", "bf16", {}}});
  CHECK(where_values_hold(same, {0, 1, 2}, {0, 1, 0}, 2) ==
        Where{"x (2 of 3 recipes)", "x (1 of 3 recipes)"});
}

TEST_CASE("what no recipe is for is refused with what there is") {
  const RecipeBook book = small_book({{"25.09", "a-1", "gx1", "mxfp8", {"1", "one", ""}}});
  CHECK(error_of(book, {.stack = "t", .model = "a-1"}).find("one of s") != std::string::npos);
  CHECK(error_of(book, {.stack = "s", .model = "a-1", .device = "gx2"})
            .find("did you mean \"gx1\"") != std::string::npos);
  CHECK(error_of(book, {.stack = "s", .model = "a-1", .precision = "bf16"}).find("mxfp8") !=
        std::string::npos);
  CHECK(error_of(book, {.stack = "s", .model = "a-1", .task = "sft"}).find("pretrain") !=
        std::string::npos);
  CHECK(error_of(book, {.stack = "s", .model = "d-1"}).find("dense models") != std::string::npos);
}

TEST_CASE("a table of recipes that names what is not there is an error with its line") {
  const ScratchFolder folder("recipes");
  for (const auto& item : std::filesystem::directory_iterator(root / "workloads/catalog/recipes"))
    if (item.path().extension() == ".csv")
      std::filesystem::copy(item.path(),
                            std::filesystem::path(folder / "") / item.path().filename());
  const std::filesystem::path file = folder / "recipes.csv";
  const std::string header =
      "source,model,task,device,precision,variant,gpus,global_batch,sequence,settings,note\n";
  const auto error = [&](const std::string& line) {
    std::ofstream(file) << header << line;
    return error_text([&] { load_recipes(folder / ""); });
  };
  CHECK(error("99999,llama3-8b,pretrain,gb200,bf16,,8,128,8192,1,\n").find("line 2") !=
        std::string::npos);
  CHECK(error("1,lama,pretrain,gb200,bf16,,8,128,8192,1,\n").find("a model of models.csv") !=
        std::string::npos);
  CHECK(error("1,llama3-8b,pretrain,gb200,bf16,,8,128,8192,,\n").find("column settings") !=
        std::string::npos);
  CHECK(error("1,llama3-8b,pretrain,gb200,bf16,,8,128,8192,1,\n") == "no error");
}

}  // namespace
}  // namespace orrery
