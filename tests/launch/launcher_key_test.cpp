// SPDX-License-Identifier: Apache-2.0
// Tests that a launcher is a key of a stack: overlays inherit it, and no accelerator gets
// another's.
#include <catch2/catch.hpp>

#include "tests/base/scratch_folder.h"
#include "tests/launch/launch_questions.h"

namespace orrery {
namespace {

const Layout split{.tp = 2, .pp = 2, .dp = 4};

LaunchFlags flags_of_overlay(const std::string& text) {
  const ScratchFolder scratch("stack");
  const std::string file = scratch.add("my.json", text).string();
  return flags_of(file.c_str(), split);
}

TEST_CASE("a stack that is based on another is started as that one is") {
  const LaunchFlags nemo = flags_of("nemo", split);
  const LaunchFlags mine = flags_of_overlay(R"({
      "name": "my-nemo", "title": "Ours", "framework": "NeMo", "based_on": "nemo",
      "base": {"gradient_overlap": false},
      "releases": [{"release": "1", "date": "2026-01", "changes": ["ours"]}]})");
  CHECK(mine.program == nemo.program);
  CHECK(mine.flags.size() == nemo.flags.size());
  const LaunchFlags old = flags_of_overlay(R"({
      "name": "my-nemo", "title": "Ours", "framework": "NeMo", "based_on": "nemo@24.11",
      "base": {}, "releases": [{"release": "7", "date": "2026-01", "changes": ["ours"]}]})");
  CHECK(old.program == flags_of("nemo@24.11", split).program);
  CHECK(old.language == "python");
}

TEST_CASE("a name and what it is based on make a stack") {
  const LaunchFlags nemo = flags_of("nemo", split);
  const LaunchFlags mine = flags_of_overlay(R"({"name": "my-nemo", "based_on": "nemo"})");
  CHECK(mine.text == nemo.text);
  CHECK_FALSE(mine.text.empty());
  CHECK(flags_of_overlay(R"({"name": "my-nemo", "based_on": "nemo@24.11"})").text ==
        flags_of("nemo@24.11", split).text);
}

TEST_CASE("a stack may be started by another program than the one that it is based on") {
  const LaunchFlags f = flags_of_overlay(R"({
      "name": "mine", "title": "Ours", "framework": "Ours", "based_on": "nemo",
      "base": {"launcher": "scripts"},
      "releases": [{"release": "1", "date": "2026-01", "changes": ["ours"]}]})");
  CHECK(f.flags.empty());
  CHECK(f.note == "Ours has no flags to paste: its runs are set up in scripts of their own.");
}

TEST_CASE("what is started where there is no CUDA gets no flags of CUDA") {
  struct Machine {
    const char *stack, *device;
  };
  for (const Machine m :
       {Machine{"primus", "mi300x"}, Machine{"megatron-lm-rocm", "mi250x"},
        Machine{"maxtext", "tpu-v5p"}, Machine{"neuronx-distributed", "trainium2"},
        Machine{"megatron-lm-gaudi", "gaudi3"}}) {
    INFO(m.stack);
    const LaunchFlags f =
        flags_on(m.device, Architecture::other, m.stack, split, small_dense_model());
    CHECK_FALSE(f.text.empty());
    CHECK(f.environment.empty());
    CHECK(f.text.find("CUDA") == std::string::npos);
    CHECK(f.text.find("cuda") == std::string::npos);
  }
}

TEST_CASE("what is set up by hand says so, and how") {
  const LaunchFlags f = flags_of("mindspeed", split);
  CHECK(f.flags.empty());
  CHECK(f.note.find("by hand") != std::string::npos);
}

TEST_CASE("Primus takes Megatron-LM's arguments in its YAML file") {
  const LaunchFlags f = flags_of("primus", split);
  CHECK(f.language == "yaml");
  for (const char* line :
       {"modules:\n  pre_trainer:\n    framework: megatron\n    overrides:\n",
        "      tensor_model_parallel_size: 2\n", "      pipeline_model_parallel_size: 2\n",
        "      use_distributed_optimizer: true\n", "      bf16: true\n"}) {
    INFO(line << "in\n" << f.text);
    CHECK(f.text.find(line) != std::string::npos);
  }
}

}  // namespace
}  // namespace orrery
