// SPDX-License-Identifier: Apache-2.0
// Holds steps of RL post-training to their laws: phases add up, policies order, batches scale.
#include "sim/outcome/rl/rl_step.h"

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/engine/scenario.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

RlJob llama_job(std::int64_t gpus, std::int64_t generation = 0) {
  const auto catalog = data_root() / "workloads/catalog";
  RlJob job;
  job.cluster = load_cluster("dgx-h100", gpus);
  job.model = load_model("llama3.1-8b", catalog / "models");
  job.program = load_rl_program("nemo-rl@0.5", catalog / "rl_programs");
  job.lengths = {.prompt = 128, .response = 1000, .context = 4096};
  job.responses = 512;
  job.generation.gpus = generation;
  job.generation.memory_share = 0.7;
  job.generation.stack = catalogue_stack(job.program.serving_stack, job.cluster, job.model,
                                         {.task = Task::decode}, PrecisionRecipe::bf16);
  job.training.layout.dp = gpus - generation;
  job.training.layout.recompute = Recompute::full;
  job.training.update_batch = 256;
  job.training.stack = catalogue_stack(job.program.training_stack, job.cluster, job.model,
                                       {.task = Task::sft}, PrecisionRecipe::bf16);
  return job;
}

TEST_CASE("phases that take turns add up to a step") {
  const RlStep s = predict_rl_step(llama_job(8));
  const Seconds sum = s.sync.time() + s.rollout.time + s.passes.logprobs + s.passes.training +
                      s.handover + s.host + s.validation;
  CHECK(s.step.si() == Approx(sum.si()));
  CHECK(s.passes.updates == 2);
  CHECK(s.tokens == Approx(512 * 1128.0).epsilon(0.001));
  CHECK(s.tokens_per_gpu == Approx(s.tokens / s.step.si() / 8));
}

TEST_CASE("a step off policy takes the longer of generation and training") {
  RlJob job = llama_job(16, 8);
  const RlStep turns = predict_rl_step(job);
  job.steps_off = 1;
  const RlStep beside = predict_rl_step(job);
  CHECK(beside.rollout.time == turns.rollout.time);
  CHECK(beside.step.si() ==
        Approx((beside.sync.time() + std::max(beside.rollout.time, beside.trains)).si()));
  CHECK(beside.step < turns.step);
  CHECK(beside.waits_for_generation == (beside.rollout.time > beside.trains));
}

TEST_CASE("more steps off never slow generation: what is under way fills the tail") {
  RlJob job = llama_job(16, 8);
  job.steps_off = 1;
  const Seconds one = predict_rl_step(job).rollout.time;
  job.steps_off = 4;
  const Seconds four = predict_rl_step(job).rollout.time;
  CHECK(four < one);
  CHECK(four.si() > one.si() / 4);
}

TEST_CASE("a reference model is one more pass, and parameters that come and go") {
  RlJob job = llama_job(8);
  const RlStep with = predict_rl_step(job);
  job.training.reference = false;
  const RlStep without = predict_rl_step(job);
  CHECK(with.passes.logprobs.si() == Approx(2 * without.passes.logprobs.si()));
  CHECK(with.passes.training == without.passes.training);
  const double parameters = with.passes.parameters.si();
  CHECK((with.handover - without.handover).si() ==
        Approx(3 * parameters / job.program.host_copy.get().si()));
}

TEST_CASE("the longest responses decide how long a batch is generated") {
  RlJob job = llama_job(8);
  const Seconds even = predict_rl_step(job).rollout.time;
  job.lengths.context = 16384;
  CHECK(predict_rl_step(job).rollout.time > even);
  // A tail: half of the tokens are there long before the last.
  const Rollout rollout = predict_rl_step(llama_job(8)).rollout;
  CHECK(rollout.half < 0.6 * rollout.time);
}

TEST_CASE("weights of whole models cross the network, and no faster than the program moves them") {
  RlJob job = llama_job(16, 8);
  const WeightSync split = predict_weight_sync(job);
  CHECK(split.weights.si() == Approx(16.06e9).epsilon(0.001));
  CHECK(split.send > Seconds(0));
  CHECK(split.time() >= split.program);
  CHECK(split.program.si() == Approx(split.weights.si() / job.program.split_sync.get().si()));
  const WeightSync shared = predict_weight_sync(llama_job(16));
  CHECK(shared.send == Seconds(0));
}

TEST_CASE("ranks that nobody places by domain exchange tokens of experts over the network") {
  const auto catalog = data_root() / "workloads/catalog";
  RlJob job = llama_job(16);
  job.cluster = load_cluster("gb200-nvl72", 16);
  job.model = load_model("qwen3-30b-a3b", catalog / "models");
  job.training.layout.ep = 16;
  REQUIRE_FALSE(job.program.places_by_domain);
  const RlStep apart = predict_rl_step(job);
  job.program.places_by_domain = true;
  const RlStep together = predict_rl_step(job);
  CHECK(apart.passes.training > together.passes.training);
  CHECK(apart.passes.logprobs > together.passes.logprobs);
  // One GPU has no rank on another host.
  CHECK(apart.rollout.time == together.rollout.time);
  // Hosts of DGX are domains as they are.
  RlJob whole = llama_job(16);
  const Seconds before = predict_rl_step(whole).step;
  whole.program.places_by_domain = true;
  CHECK(predict_rl_step(whole).step == before);
}

TEST_CASE("validation adds its whole batches over its period") {
  RlJob job = llama_job(8);
  const RlStep without = predict_rl_step(job);
  job.validation = {.period = 10, .prompts = 16, .together = 5};
  const RlStep with = predict_rl_step(job);
  CHECK(job.validation.batches() == 3);
  CHECK(with.validation > Seconds(0));
  CHECK(with.step.si() == Approx((without.step + with.validation).si()));
  job.validation.prompts = 4;
  CHECK(predict_rl_step(job).validation == Seconds(0));
}

TEST_CASE("jobs of RL that cannot be are refused by what is wrong with them") {
  RlJob beside = llama_job(8);
  beside.steps_off = 1;
  CHECK_THROWS_WITH(predict_rl_step(beside), Catch::Contains("steps off"));
  RlJob engines = llama_job(8);
  engines.generation.layout.tp = 3;
  CHECK_THROWS_WITH(predict_rl_step(engines), Catch::Contains("multiple of the 3"));
  RlJob layout = llama_job(8);
  layout.training.layout.dp = 4;
  CHECK_THROWS_WITH(predict_rl_step(layout), Catch::Contains("layout of 4 GPUs"));
  RlJob all = llama_job(8);
  all.generation.gpus = 8;
  CHECK_THROWS_WITH(predict_rl_step(all), Catch::Contains("some that train"));
  RlJob tight = llama_job(8);
  tight.generation.memory_share = 0.1;
  CHECK_THROWS_AS(predict_rl_step(tight), Error);
}

TEST_CASE("programs of the catalogue are read by release, and unknown ones name the nearest") {
  const auto folder = data_root() / "workloads/catalog/rl_programs";
  const RlProgram program = load_rl_program("nemo-rl@0.5", folder);
  CHECK(program.serving_stack == "vllm@0.11");
  CHECK(program.split_sync.get() > program.shared_sync.get());
  CHECK(load_rl_program("nemo-rl", folder).release == "0.6");
  REQUIRE(program.training_settings);
  CHECK(program.training_settings->at("launch").text() == "eager");
  CHECK_THROWS_WITH(load_rl_program("nemo-rl@0.55", folder), Catch::Contains("0.5"));
  CHECK_THROWS_WITH(load_rl_program("nemorl", folder), Catch::Contains("nemo-rl"));
}

}  // namespace
}  // namespace orrery
