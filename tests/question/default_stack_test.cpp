// SPDX-License-Identifier: Apache-2.0
// Tests which software stack a question gets that names none, or a release that is not listed.
#include <catch2/catch.hpp>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

Scenario scenario_on(const char* cluster, SortedJson more = {}) {
  SortedJson settings = {{"model", "llama3.1-8b"},
                         {"cluster", cluster},
                         {"gpus", 8},
                         {"seq", 4096},
                         {"global_batch", 64}};
  if (more.is_object()) settings.update(more);
  return read_scenario(JsonValue::from(settings, "command line"));
}

TEST_CASE("without a stack: what people run on the machine, as its catalogue entry says") {
  const auto name = [](const char* cluster) { return scenario_on(cluster).stack.name; };
  CHECK(name("dgx-h100") == "megatron-core");
  CHECK(scenario_on("dgx-h100").stack.release == "0.15");
  CHECK(name("tpu-v5p") == "maxtext");
  for (const char* cluster : {"mi300x-8", "mi325x-8", "mi355x-8"}) CHECK(name(cluster) == "primus");
  CHECK(name("mi250x-frontier") == "megatron-lm-rocm");
  CHECK(name("trn2") == "neuronx-distributed");
  CHECK(name("gaudi3-8") == "megatron-lm-gaudi");
  CHECK(name("ascend-910b") == "mindspeed");
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
