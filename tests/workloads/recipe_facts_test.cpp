// SPDX-License-Identifier: Apache-2.0
// Tests which facts of launch programs a stack takes: the model's before its family's before those
// of most families, of the last release, for the device and precision; and that all shipped ones
// can be set.
#include <catch2/catch.hpp>

#include <filesystem>

#include "tests/base/error_text.h"
#include "workloads/release/facts.h"
#include "workloads/stack/stack.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

JsonValue facts() {
  return JsonValue::parse(R"({"stack": "s", "models": [
    {"model": ["a-1", "a-one"], "family": "a", "facts": [
      {"release": "25.04", "device": ["gb200"], "precision": ["bf16"], "use": ["first"]},
      {"release": "25.09", "device": ["gb200"], "precision": ["bf16"], "use": ["second"]},
      {"release": "25.09", "device": ["gb200"], "precision": ["mxfp8"], "use": ["narrow"]},
      {"release": "25.09", "task": "lora", "device": ["gb200"], "precision": ["bf16"],
       "use": ["adapters"]},
      {"release": "26.02", "device": ["gb300"], "precision": ["bf16"], "use": ["third"]}]},
    {"model": ["a-2"], "family": "a", "facts": [
      {"release": "26.04", "device": ["b300"], "precision": ["bf16"], "use": ["sibling"]}]}],
   "experts": [{"release": "25.11", "device": ["h100"], "precision": ["bf16"], "use": ["most"]}],
   "dense": [],
   "without": {"b": {"experts": [
     {"release": "25.11", "device": ["h100"], "precision": ["bf16"], "use": ["others"]}]}}})",
                          "facts.json");
}

std::string used(const StackContext& context, const std::string& release) {
  const auto found = recipe_facts(facts(), context, release);
  return found ? found->block.at("use").items().front().text() : "";
}

StackContext run_of(const std::string& model, const std::string& family,
                    const std::string& device) {
  return {.device = device, .model = model, .family = family, .moe = true};
}

TEST_CASE("facts of a model are those of the last release up to the one asked for") {
  const StackContext run = run_of("a-one", "a", "gb200");
  CHECK(used(run, "25.02").empty());
  CHECK(used(run, "25.04") == "first");
  CHECK(used(run, "25.07") == "first");
  CHECK(used(run, "27.01") == "second");
}

TEST_CASE("a stack without releases of its own has no scripts") {
  const auto load = [](const std::string& file) {
    return error_text([&] { load_stack(file, {}, catalog("stacks")); });
  };
  CHECK_THAT(load(R"({"name": "x", "based_on": "nemo", "recipes": "nemo"})"),
             Catch::Contains("recipes: found \"nemo\"; expected releases in the same file"));
  CHECK_NOTHROW(load_stack(R"({"name": "x", "based_on": "nemo"})", {}, catalog("stacks")));
}

TEST_CASE("facts hold for a device, and for a precision before others of it") {
  StackContext run = run_of("a-1", "a", "gb200");
  run.precision = PrecisionRecipe::mxfp8;
  CHECK(used(run, "26.02") == "narrow");
  CHECK(used(run, "25.04") == "first");  // of the release, in bf16 alone
  run.device = "gb300";
  CHECK(used(run, "26.02") == "third");
  run.device = "b200";
  CHECK(used(run, "26.02").empty());
}

TEST_CASE("facts of one task are not those of another") {
  StackContext run = run_of("a-1", "a", "gb200");
  run.task = Task::lora;
  CHECK(used(run, "25.09") == "adapters");
  run.task = Task::sft;
  CHECK(used(run, "25.09").empty());
}

TEST_CASE("a model without facts takes its family's, then those of most families") {
  CHECK(used(run_of("a-3", "a", "gb200"), "25.09") == "second");
  CHECK(used(run_of("a-1", "a", "b300"), "26.04") == "sibling");
  CHECK(used(run_of("z-1", "z", "h100"), "25.11") == "most");
  StackContext unscripted = run_of("a-1", "a", "h100");
  unscripted.scripted = false;
  CHECK(used(unscripted, "25.11") == "most");
  CHECK(recipe_facts(facts(), unscripted, "25.11")->of_most);
  unscripted.scripted = true;
  unscripted.device = "gb200";
  CHECK_FALSE(recipe_facts(facts(), unscripted, "25.11")->of_most);
  StackContext dense = run_of("z-1", "z", "h100");
  dense.moe = false;
  CHECK(used(dense, "25.11").empty());
}

TEST_CASE("a family that is to be unknown has no vote on what most families set") {
  StackContext run = run_of("b-1", "b", "h100");
  CHECK(used(run, "25.11") == "most");
  run.scripted = false;
  CHECK(used(run, "25.11") == "others");
  run.family = "c";
  CHECK(used(run, "25.11") == "most");
}

TEST_CASE("a misspelt key of facts is an error") {
  const JsonValue file = JsonValue::parse(
      R"({"stack": "s", "models": [], "dense": [],
          "experts": [{"release": "25.11", "devise": []}]})",
      "facts.json");
  CHECK_THAT(error_text([&] { recipe_facts(file, run_of("z", "z", "h100"), "26.02"); }),
             Catch::Contains("experts[0]") && Catch::Contains("devise"));
}

TEST_CASE("law: every shipped fact can be set") {
  const std::string name = GENERATE("nemo", "automodel");
  const JsonValue file = JsonValue::load(catalog("recipes") / (name + ".json"));
  const std::string stack = file.at("stack").text();
  int set = 0;
  const auto check = [&](const JsonValue& blocks, const std::string& model, bool moe) {
    for (const JsonValue& block : blocks.items())
      for (const JsonValue& device : block.at("device").items())
        for (const JsonValue& precision : block.at("precision").items()) {
          const auto task = block.find("task");
          const StackContext context{.device = device.text(),
                                     .model = model,
                                     .precision = precision_from(precision),
                                     .moe = moe,
                                     .task = task ? task_text.from(*task) : Task::pretrain};
          load_stack(stack + "@" + block.at("release").text(), context, catalog("stacks"));
          ++set;
        }
  };
  for (const JsonValue& entry : file.at("models").items())
    check(entry.at("facts"), entry.at("model").items().front().text(), true);
  check(file.at("experts"), "", true);
  check(file.at("dense"), "", false);
  if (const auto without = file.find("without"))
    for (const auto& [family, kinds] : without->members())
      for (const auto& [kind, blocks] : kinds.members()) check(blocks, "", kind == "experts");
  CHECK(set > (name == "nemo" ? 500 : 30));
}

TEST_CASE("Qwen3 235B on GB200 in MXFP8 runs as its launch program of 26.06 says") {
  const StackContext context{.architecture = "blackwell",
                             .device = "gb200",
                             .model = "qwen3-235b-a22b",
                             .precision = PrecisionRecipe::mxfp8,
                             .moe = true};
  const Stack before = load_stack("nemo@26.04", context, catalog("stacks"));
  const Stack after = load_stack("nemo@26.06", context, catalog("stacks"));
  CHECK(before.host.launch == LaunchMode::scoped_graph);
  CHECK(before.kernels.attention_format != Format::fp8);
  CHECK(after.host.launch == LaunchMode::full_graph);
  CHECK(after.kernels.attention_format == Format::fp8);
  CHECK(after.communication.expert_deduplicated);
}

}  // namespace
}  // namespace orrery
