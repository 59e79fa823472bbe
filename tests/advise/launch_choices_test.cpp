// SPDX-License-Identifier: Apache-2.0
// Tests that what advise searches can be started: every choice of its grid has a setting.
#include <filesystem>
#include <set>

#include <catch2/catch.hpp>

#include "tests/launch/launch_questions.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

std::filesystem::path stacks() { return data_root() / "workloads/catalog/stacks"; }

Stack stack_for(const std::string& name, const Model& model, PrecisionRecipe precision) {
  return load_stack(name,
                    {.architecture = "hopper",
                     .device = "h100-sxm",
                     .model = model.name,
                     .family = model.family,
                     .precision = precision,
                     .moe = model.has_experts()},
                    stacks());
}

Model catalogue_model(const char* name) {
  return load_model(name, data_root() / "workloads/catalog/models");
}

// Who reads the sentence cannot do what was predicted, whatever he writes elsewhere.
bool refuses(const FlagNote& note) {
  if (note.key.empty()) return false;
  const auto says = [&](const char* part) { return note.sentence.find(part) != std::string::npos; };
  return says("has no flag for") || says("has no setting for") || says("refuse");
}

// Points of a family that try each choice once: one list at a time, the others at their first.
std::vector<Layout> each_choice(const Family& f) {
  std::vector<Layout> all;
  const auto turn = [&](std::int32_t GridPoint::*wheel, std::int32_t size, GridPoint p) {
    for (std::int32_t i = 0; i < size; ++i) {
      p.*wheel = i;
      all.push_back(f.layout(p));
    }
  };
  turn(&GridPoint::sequence_parallel, choices(f.sequence_parallel), {});
  turn(&GridPoint::exchange, choices(f.exchanges), {});
  turn(&GridPoint::recompute, choices(f.recomputes), {});
  turn(&GridPoint::offload, choices(f.offloads), {});
  for (std::int32_t m = 0; m < choices(f.micro_batches); ++m)
    turn(&GridPoint::pipeline, choices(choice(f.micro_batches, m).pipelines), {.micro_batch = m});
  for (std::int32_t s = 0; s < choices(f.shards); ++s) {
    const ShardOption& shard = choice(f.shards, s);
    turn(&GridPoint::zero, choices(shard.zero_stages), {.shard = s});
    turn(&GridPoint::rank, choices(shard.ranks), {.shard = s});
    turn(&GridPoint::bucket, choices(shard.buckets), {.shard = s});
  }
  return all;
}

// Sentences about choices of the grid for which the program has no setting.
std::set<std::string> refused(const std::string& name, const Model& model, std::int64_t gpus,
                              PrecisionRecipe precision) {
  Question q = small_question(model, gpus);
  q.job = small_job(16384, 64);
  q.precisions = {precision};
  const Stack stack = stack_for(name, model, precision);
  q.optimizers = {stack.defaults.optimizer};
  std::set<std::string> all;
  const SearchSpace space(subject_of(q, stack), {});
  // On many accelerators a part of the families: which they are matters less than their number.
  const std::size_t step = gpus > 8 ? 7 : 1;
  for (std::size_t i = 0; i < space.families().size(); i += step)
    for (const Layout& layout : each_choice(space.families()[i])) {
      const LaunchFlags flags =
          launch_flags(layout, model, q.job, stack, launch_device(load_device("h100-sxm")));
      for (const FlagNote& note : flags.missing)
        if (refuses(note) && note.key != "precision" && note.key != "optimizer")
          all.insert(stack.name + "@" + stack.release + " " + model.name + ": " + note.key + ": " +
                     note.sentence);
    }
  return all;
}

std::string first_of(const std::set<std::string>& all) { return all.empty() ? "" : *all.begin(); }

TEST_CASE("every choice of the grid can be started, in each release of each program") {
  const std::vector<Model> models = {small_dense_model(), small_expert_model(),
                                     catalogue_model("nemotron-h-8b")};
  for (const std::string& name : stack_names(stacks()))
    for (const std::string& release : stack_releases(name, stacks()))
      for (const Model& model : models)
        CHECK(first_of(refused(name + "@" + release, model, 8, PrecisionRecipe::bf16)) == "");
}

TEST_CASE("what is offered on 64 accelerators, with latent attention and in FP8, can be started") {
  const std::vector<Model> models = {small_dense_model(), small_expert_model(),
                                     catalogue_model("deepseek-v2-lite")};
  for (const std::string& name : stack_names(stacks()))
    for (const Model& model : models) {
      CHECK(first_of(refused(name, model, 64, PrecisionRecipe::bf16)) == "");
      CHECK(first_of(refused(name, model, 8, PrecisionRecipe::fp8_delayed)) == "");
    }
}

TEST_CASE("the first advised layout is said whole") {
  for (const char* name : {"megatron-core", "megatron-deepspeed", "nemo@24.11", "nemo@26.04",
                           "pytorch-fsdp2", "automodel", "nanotron"})
    for (const Model& model : {small_dense_model(), small_expert_model()})
      for (const std::int64_t gpus : {8, 64}) {
        Question q = small_question(model, gpus);
        q.job = small_job(8192, 64);
        q.stack_name = name;
        const Advice advice = advise(q, {});
        INFO(name << " " << model.name << " " << gpus);
        REQUIRE_FALSE(advice.best.empty());
        const Layout& first = advice.best.front().layout;
        const Stack stack = stack_for(name, model, first.precision);
        const LaunchFlags flags =
            launch_flags(first, model, q.job, stack, launch_device(load_device("h100-sxm")));
        for (const FlagNote& note : flags.missing) {
          INFO(to_text(first) << ": " << note.key << ": " << note.sentence);
          CHECK(note.key.empty());
        }
      }
}

TEST_CASE("delayed scaling runs neither norms nor the experts' activation again") {
  const Model model = catalogue_model("deepseek-v2-lite");
  const auto modules = [&](const char* name, PrecisionRecipe precision) {
    return stack_for(name, model, precision).choices.recompute_modules;
  };
  for (const char* name : {"megatron-core", "nemo"}) {
    INFO(name);
    const auto current = modules(name, PrecisionRecipe::fp8_current);
    const auto delayed = modules(name, PrecisionRecipe::fp8_delayed);
    for (const RecomputeModule m : {RecomputeModule::layernorm, RecomputeModule::moe_act}) {
      CHECK(StackChoices::allows(current, m));
      CHECK_FALSE(StackChoices::allows(delayed, m));
    }
    CHECK(StackChoices::allows(delayed, RecomputeModule::mla_up_proj));
  }
}

TEST_CASE("models with Mamba layers: one chunk a stage, as many layers each") {
  const Model model = catalogue_model("nemotron-h-8b");
  std::int64_t most = 1;
  for (const char* name : {"megatron-core", "nemo"}) {
    Question q = small_question(model, 64);
    q.job = small_job(8192, 64);
    const Stack stack = stack_for(name, model, PrecisionRecipe::bf16);
    const SearchSpace space(subject_of(q, stack), {});
    for (const Family& family : space.families()) {
      REQUIRE(model.layer_count() % family.base.pp == 0);
      most = std::max(most, family.base.pp);
      for (const MicroBatchOption& micro : family.micro_batches)
        for (const PipelineOption& pipeline : micro.pipelines) {
          REQUIRE(pipeline.vpp == 1);
          REQUIRE(pipeline.stage_layers.empty());
        }
    }
  }
  CHECK(most > 1);
}

TEST_CASE("stacks that split nothing have data-parallel ranks alone") {
  for (const char* name : {"llm-foundry", "transformers"}) {
    Question q = small_question(small_expert_model(), 8);
    q.job = small_job(16384, 64);
    const Stack stack = stack_for(name, q.model, PrecisionRecipe::bf16);
    const SearchSpace space(subject_of(q, stack), {});
    REQUIRE_FALSE(space.families().empty());
    for (const Family& family : space.families()) CHECK(family.base.dp == 8);
  }
  // Who asks for it gets it.
  Question q = small_question(small_dense_model(), 8);
  const Stack stack = stack_for("transformers", q.model, PrecisionRecipe::bf16);
  CHECK_FALSE(SearchSpace(subject_of(q, stack), {.tp = 2, .pp = 2}).families().empty());
}

TEST_CASE("releases that are not listed: the last before them, and none before the first") {
  CHECK(known_release("megatron-core@0.16", stacks()) == "0.15");
  CHECK(known_release("nemo@99", stacks()) == stack_releases("nemo", stacks()).back());
  CHECK(known_release("nemo", stacks()) == stack_releases("nemo", stacks()).back());
  CHECK(known_release("nemo@0", stacks()).empty());
  const Model model = small_dense_model();
  CHECK(stack_for("megatron-core@0.16", model, PrecisionRecipe::bf16).asked == "0.16");
  CHECK(stack_for("megatron-core@0.14", model, PrecisionRecipe::bf16).asked.empty());
  CHECK(stack_for("megatron-core", model, PrecisionRecipe::bf16).asked.empty());
}

}  // namespace
}  // namespace orrery
