// SPDX-License-Identifier: Apache-2.0
// Tests that what runs where is data: of every device, and of every stack.
#include "sim/engine/capability.h"

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"

namespace orrery {
namespace {

Stack plain(const std::string& name) {
  return load_stack(name, {}, data_root() / "workloads/catalog/stacks");
}

TEST_CASE("every device names stacks that run on it, and precisions that exist") {
  const auto sources = load_sources();
  for (const std::string& name : catalog_names("hw_models/catalog/accelerators")) {
    INFO(name);
    const Device device = load_device(name);
    REQUIRE(device.software.has_value());
    CHECK(sources.count(device.software->source) == 1);
    CHECK_FALSE(device.software->reason.empty());
    const std::vector<PrecisionRecipe> precisions = device_precisions(device);
    CHECK(precisions.size() == device.software->precisions.size());
    REQUIRE_FALSE(precisions.empty());
    for (const Task task : {Task::pretrain, Task::decode})
      CHECK(cannot_run(plain(usual_stack(device, task)), device, precisions.front()).empty());
  }
}

TEST_CASE("every stack says what it runs on, and by what it is started") {
  for (const std::string& name : stack_names(data_root() / "workloads/catalog/stacks")) {
    INFO(name);
    CHECK_FALSE(plain(name).platforms.empty());
    CHECK_FALSE(plain(name).flags_release.empty());
  }
}

TEST_CASE("a reason names the platform, the device or the release that is at fault") {
  const auto why = [](const char* stack, const char* device, PrecisionRecipe precision) {
    return cannot_run(plain(stack), load_device(device), precision);
  };
  CHECK(why("nemo", "h100-sxm", PrecisionRecipe::fp8_current).empty());
  CHECK(why("nemo", "h100-sxm", PrecisionRecipe::mxfp8).find("10.0") != std::string::npos);
  CHECK(why("maxtext", "tpu-v5p", PrecisionRecipe::fp8_current).find("no FP8") !=
        std::string::npos);
  CHECK(why("nemo", "mi300x", PrecisionRecipe::bf16).find("primus") != std::string::npos);
  CHECK(why("megatron-core", "tpu-v5p", PrecisionRecipe::bf16).find("maxtext") !=
        std::string::npos);
  CHECK(why("megatron-core@0.8", "b200-sxm", PrecisionRecipe::mxfp8).find("no recipe") !=
        std::string::npos);
  // A serving engine is refused in words of serving.
  const std::string nvfp4 = why("vllm", "h100-sxm", PrecisionRecipe::nvfp4);
  CHECK(nvfp4.find("does not serve in nvfp4") != std::string::npos);
  CHECK(why("vllm", "mi300x", PrecisionRecipe::bf16).find("primus") == std::string::npos);
  CHECK(cannot_cache(load_device("h100-sxm"), Format::fp4).find("10.0") != std::string::npos);
  CHECK(cannot_cache(load_device("h100-sxm"), Format::fp8).empty());
  CHECK(cannot_cache(load_device("b200-sxm"), Format::fp4).empty());
  // A device of which nothing is known refuses nothing.
  Device unknown = load_device("h100-sxm");
  unknown.software.reset();
  CHECK(cannot_run(plain("maxtext"), unknown, PrecisionRecipe::nvfp4).empty());
}

TEST_CASE("a new architecture is data: its formats are those of its entry") {
  Device device = load_device("h100-sxm");
  device.software->precisions = {"bf16", "mxfp8"};
  CHECK(device_precisions(device) ==
        std::vector<PrecisionRecipe>{PrecisionRecipe::bf16, PrecisionRecipe::mxfp8});
}

}  // namespace
}  // namespace orrery
