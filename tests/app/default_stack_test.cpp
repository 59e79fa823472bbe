// Tests which software stack a question gets that names none, or a release that is not listed.
#include <catch2/catch.hpp>

#include "sim/app/settings.h"
#include "sim/base/check.h"

namespace orrery {
namespace {

Scenario scenario_on(const char* cluster, nlohmann::json more = {}) {
  nlohmann::json settings = {{"model", "llama3.1-8b"},
                             {"cluster", cluster},
                             {"gpus", 8},
                             {"seq", 4096},
                             {"global_batch", 64}};
  if (more.is_object()) settings.update(more);
  return read_scenario(JsonValue::from(settings, "command line"));
}

TEST_CASE("without a stack: Megatron-Core's newest on CUDA, MaxText on TPUs, a fork elsewhere") {
  CHECK(scenario_on("dgx-h100").stack.name == "megatron-core");
  CHECK(scenario_on("dgx-h100").stack.release == "0.15");
  CHECK(scenario_on("tpu-v5p").stack.name == "maxtext");
  for (const char* cluster : {"mi300x-8", "gaudi3-8", "trn2"}) {
    INFO(cluster);
    CHECK(scenario_on(cluster).stack.name == "megatron-core");
    CHECK(scenario_on(cluster).stack.release == "0.8");
    CHECK(scenario_on(cluster).stack.asked.empty());
  }
}

TEST_CASE("a release before the first one is an error that names them all") {
  try {
    scenario_on("dgx-h100", {{"stack", "nemo@0"}});
    FAIL("release 0 of NeMo was read");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find("23.04") != std::string::npos);
    CHECK(text.find("26.08") != std::string::npos);
  }
  CHECK(scenario_on("dgx-h100", {{"stack", "nemo@99"}}).stack.asked == "99");
}

}  // namespace
}  // namespace orrery
