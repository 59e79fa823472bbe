// SPDX-License-Identifier: Apache-2.0
// Holds the JSON of RL jobs to what it says, and to errors that name the place.
#include "sim/question/rl/rl_settings.h"

#include <catch2/catch.hpp>

#include "tests/base/error_text.h"

namespace orrery {
namespace {

SortedJson llama() {
  return {{"model", "llama3.1-8b"},
          {"cluster", "dgx-h100"},
          {"gpus", 16},
          {"program", "nemo-rl"},
          {"prompt", 128},
          {"response", 1000},
          {"context", 4096},
          {"responses", 512},
          {"update_batch", 256},
          {"generation", {{"gpus", 8}, {"memory_share", 0.8}}},
          {"training", {{"recompute", "full"}, {"pp", 2}, {"reference", false}}},
          {"steps_off", 1}};
}

RlJob read(const SortedJson& settings) {
  static Catalogues catalogues;
  return read_rl_job(JsonValue::from(settings, "job.json"), catalogues);
}

std::string error_of(const SortedJson& settings) {
  return error_text([&] { read(settings); });
}

TEST_CASE("a job of RL in JSON is the job that it says") {
  const RlJob job = read(llama());
  CHECK(job.split());
  CHECK(job.steps_off == 1);
  CHECK(job.training.layout.dp == 4);
  CHECK(job.training.layout.recompute == Recompute::full);
  CHECK_FALSE(job.training.reference);
  CHECK(job.training.update_batch == 256);
  CHECK(job.generation.memory_share == 0.8);
  CHECK(job.program.name == "nemo-rl");
  // What the program leaves off is off, whatever scripts of its library set.
  CHECK(job.training.stack.communication.tensor_exposed.get() == 1);
  CHECK(job.training.stack.host.launch == LaunchMode::eager);
  const RlRange range{.low = 0.8, .high = 1.5, .widened = {}};
  const Json found = rl_step_json(predict_rl_step(job), range);
  const auto number = [&](const char* key) { return found.at(key).get<double>(); };
  CHECK(number("step_high_s") == Approx(1.5 * number("step_s")));
  CHECK(number("tokens_per_s_per_gpu_low") == Approx(number("tokens_per_s_per_gpu") / 1.5));
  CHECK(found.at("step_s").get<double>() > found.at("rollout_s").get<double>());
  CHECK(found.at("updates") == 2);
  CHECK(found.at("tokens").get<double>() == Approx(512 * 1128.0).epsilon(0.001));
}

TEST_CASE("what a job of RL leaves out is usual") {
  SortedJson settings = llama();
  for (const char* key : {"generation", "training", "steps_off", "update_batch"})
    settings.erase(key);
  const RlJob job = read(settings);
  CHECK_FALSE(job.split());
  CHECK(job.training.layout.dp == 16);
  CHECK(job.training.update_batch == 512);
  CHECK(job.training.reference);
  CHECK(job.validation.batches() == 0);
}

TEST_CASE("errors of a job of RL name the place and the nearest key") {
  const auto with = [](const char* part, const char* key, const SortedJson& value) {
    SortedJson settings = llama();
    (*part == 0 ? settings : settings[part])[key] = value;
    return error_of(settings);
  };
  CHECK_THAT(with("", "responces", 1), Catch::Contains("responses"));
  CHECK_THAT(with("generation", "memory_share", 1.5), Catch::Contains("at most 1"));
  CHECK_THAT(with("generation", "tp", 3), Catch::Contains("multiple of the 3"));
  CHECK_THAT(with("training", "tpp", 2), Catch::Contains("training") && Catch::Contains("tp"));
  CHECK_THAT(with("training", "packed", "yes"), Catch::Contains("packed"));
  CHECK_THAT(with("", "response", 0), Catch::Contains("at least one token"));
  CHECK_THAT(with("", "program", "nemo-rl@9"), Catch::Contains("releases"));
  CHECK_THAT(with("", "validation", {{"period", 10}}), Catch::Contains("prompts"));
  SortedJson shared = llama();
  shared.erase("generation");
  CHECK_THAT(error_of(shared), Catch::Contains("steps off"));
}

}  // namespace
}  // namespace orrery
