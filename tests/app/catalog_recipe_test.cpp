// SPDX-License-Identifier: Apache-2.0
// The recipes of a stack as a user asks for them: a table, JSON, and one line for what is not
// there.
#include <catch2/catch.hpp>

#include "hw_models/catalogue_hash.h"
#include "sim/base/json/tree.h"
#include "tests/app/run_binary.h"

using namespace orrery::test;
using orrery::SortedJson;

namespace {

SortedJson recipe_of(const std::string& arguments) {
  const Outcome o = run("catalog show stack " + arguments + " --json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  return SortedJson::parse(o.out)["recipe"];
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The values of a setting, with where each holds.
std::string values_of(const SortedJson& recipe, const std::string& name) {
  std::string text;
  for (const auto& setting : recipe["settings"])
    if (setting["name"] == name)
      for (const auto& value : setting["values"])
        text += value["value"].get<std::string>() + ": " + value["where"].get<std::string>() + "\n";
  return text;
}

}  // namespace

TEST_CASE("recipes of a stack are shown with where each setting holds and was read") {
  const Outcome o = run("catalog show stack nemo@26.06 --recipe qwen3-235b --device gb200");
  REQUIRE(o.code == 0);
  CHECK(holds(o.out, "What the scripts of nemo 26.06 set for qwen3-235b-a22b (pretrain)"));
  CHECK(holds(o.out, "dispatcher "));
  CHECK(holds(o.out, "Megatron-Bridge v0.5.0 (2026-06-16)"));
  CHECK(holds(o.out, "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/fcbb6031"));
  CHECK(holds(o.out, "The stack's file says otherwise:"));
  CHECK(run("catalog show stack nemo@26.06 --recipe Qwen/Qwen3-235B-A22B --device GB200").out ==
        o.out);
}

TEST_CASE("recipes as JSON agree with what the scripts of a release set") {
  const SortedJson recipe = recipe_of("nemo@26.06 --recipe qwen3-235b-a22b");
  CHECK(recipe["match"] == "model");
  CHECK(recipe["release"] == "26.06");
  CHECK(values_of(recipe, "dispatcher") ==
        "hybridep: b300-sxm, gb200, gb300, rubin\nall-to-all: b200-sxm, h100-sxm\n");
  CHECK(values_of(recipe, "tp") == "1: b200-sxm, b300-sxm, gb200, gb300, rubin\n2: h100-sxm\n");
  CHECK(values_of(recipe, "recompute") == "none: \n");
  for (const auto& one : recipe["recipes"])
    CHECK(one["address"].get<std::string>().starts_with("https://github.com/"));
  const SortedJson narrow =
      recipe_of("nemo@26.06 --recipe qwen3-235b-a22b --device gb300 --precision mxfp8");
  CHECK(narrow["recipes"].size() < recipe["recipes"].size());
  for (const auto& one : narrow["recipes"]) CHECK(one["precision"] == "mxfp8");
}

TEST_CASE("a model that no script names has the majority's recipes, and says so") {
  const SortedJson recipe = recipe_of("nemo@26.08 --recipe glm-4.5 --device b200-sxm");
  CHECK(recipe["match"] == "majority");
  CHECK(holds(values_of(recipe, "grouped_gemm"), "on: in all "));
  CHECK(holds(values_of(recipe, "dispatcher"), "all-to-all: in 4 of 8 families: "));
  CHECK(values_of(recipe, "tp").empty());
  CHECK(recipe["differences"].empty());
  CHECK(holds(recipe["remarks"][0].get<std::string>(), "no script names glm-4.5"));
  CHECK(recipe_of("nemo --recipe llama3.3-70b")["match"] == "same-shape");
  CHECK(recipe_of("nemo --recipe qwen3-coder-480b-a35b")["match"] == "family");
  CHECK(recipe_of("nemo --recipe qwen3-next")["match"] == "family");
  CHECK(holds(run("catalog show stack pytorch-fsdp2-eager --recipe llama3.1-8b").out,
              "no script is of pytorch-fsdp2-eager"));
}

TEST_CASE("what recipes cannot answer is one line and exit code 2") {
  const auto refused = [](const std::string& arguments, const std::string& says) {
    const Outcome o = run("catalog " + arguments);
    INFO(arguments << ": " << o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(lines(o.err) == 1);
    CHECK(holds(o.err, says));
  };
  refused("show stack nemo --recipe lama3-8b", "did you mean \"llama3-8b\"?");
  refused("show stack nmo --recipe llama3-8b", "did you mean \"nemo\"?");
  refused("show stack hai-llm --recipe deepseek-v3", "one of llm-foundry, ");
  refused("show stack nemo@24.07 --recipe llama3-8b", "24.11.1 or later");
  refused("show stack nemo --recipe llama3-8b --device h200-sxm", "b200-sxm");
  refused("show stack nemo --recipe llama3-8b --precision fp9", "bf16");
  refused("show stack nemo --recipe llama3-8b --task decode", "pretrain");
  refused("show model llama3-8b --recipe llama3-8b", "--recipe: found a model; expected a stack");
  refused("show stack nemo --precision bf16", "--recipe MODEL");
  refused("list stack --recipe llama3-8b", "--recipe MODEL");
  refused("check --task sft", "--recipe MODEL");
  refused("show stack nemo --recipe llama3-8b --names", "list only");
}

TEST_CASE("of recipes the catalogues' hash has what predictions read") {
  int facts = 0;
  for (const orrery::CatalogueFile& file : orrery::catalogue_manifest(ORRERY_SOURCE_DIR, {}))
    if (holds(file.path, "catalog/recipes/")) {
      CHECK((holds(file.path, "recipes/nemo.json") || holds(file.path, "recipes/automodel.json")));
      ++facts;
    }
  CHECK(facts == 2);
}
