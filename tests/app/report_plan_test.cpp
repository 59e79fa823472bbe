// SPDX-License-Identifier: Apache-2.0
// Tests a layout in words: every layer, rank and gradient has its place.
#include <catch2/catch.hpp>

#include "sim/app/report/advice.h"
#include "tests/explain/whole_scenarios.h"

namespace orrery {
namespace {

std::string plan_of(const ScenarioWords& words) {
  Document document;
  add_plan(document, whole_scenario(words));
  return document.markdown();
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("the plan of one stage") {
  const std::string plan = plan_of({.layout = {.tp = 2, .dp = 4}});
  CHECK(has(plan, "All 32 layers on one stage."));
  CHECK(has(plan, "TP2 inside one scale-up domain; DP4 inside one scale-up domain."));
  CHECK(has(plan, "Each of 4 data-parallel replicas runs 16 microbatches of 1 sequence a step."));
  CHECK(has(plan, "reduced over 4 ranks, which shard the optimizer, in buckets of"));
  CHECK_FALSE(has(plan, "experts"));
  CHECK_FALSE(has(plan, "neighbouring stages"));
}

TEST_CASE("the plan of chunks, even and uneven") {
  Layout layout{.tp = 4, .pp = 4, .vpp = 2, .dp = 1, .schedule = Schedule::interleaved};
  const std::string even = plan_of({.layout = layout});
  CHECK(has(even,
            "32 layers over 4 stages of 2 chunks: every stage holds 8 layers, every chunk 4 "
            "layers. Stage s holds chunks s, s + 4."));
  CHECK(has(even, "The embedding is on stage 0, the head on stage 3."));
  CHECK(has(even, "The one replica runs 64 microbatches"));
  CHECK(has(even, "Gradients stay where they are"));
  layout.stage_layers = {3, 5, 4, 4, 4, 4, 4, 4};
  const std::string uneven = plan_of({.layout = layout});
  CHECK(has(uneven, "stage 0 holds 7 layers, 1 holds 9 layers, 2 and 3 hold 8 layers each"));
  CHECK(has(uneven, "of the 8 chunks in the model's order, chunk 0 holds 3 layers"));
}

TEST_CASE("the plan of a V, of experts and of sharded parameters") {
  const std::string v =
      plan_of({.model = "deepseek-v3",
               .layout = {.pp = 8, .vpp = 2, .dp = 16, .ep = 16, .schedule = Schedule::dual_pipe_v},
               .batch = 512});
  CHECK(has(v, "Stage s holds chunks s and 15 - s"));
  CHECK(has(v, "the head on stage 0"));
  CHECK(has(v, "A rank holds 16 of 256 experts; no other rank holds the same."));
  CHECK(has(v, "EP16 over 2 domains, 8 in each"));
  const std::string sharded = plan_of({.model = "llama3-70b",
                                       .stack = "pytorch-fsdp2",
                                       .layout = {.tp = 8, .dp = 8, .zero_stage = 3}});
  CHECK(has(sharded, "sharded over 8 ranks"));
  CHECK(has(sharded, "DP8 over 8 domains, one in each"));
}

TEST_CASE("the plan says what is given up for memory") {
  Layout layout{.tp = 2, .dp = 4};
  CHECK_FALSE(has(plan_of({.layout = layout}), "again"));
  CHECK_FALSE(has(plan_of({.layout = layout}), "host memory"));
  layout.set({.recompute = Recompute::selective,
              .modules = {RecomputeModule::layernorm, RecomputeModule::mlp}});
  layout.offload_optimizer = true;
  CHECK(has(plan_of({.layout = layout}),
            "Run again backward: mlp,layernorm. In host memory: optimizer."));
  layout.set({.recompute = Recompute::full});
  CHECK(has(plan_of({.layout = layout}), "All layers run again backward."));
  layout.recompute_layers = 8;
  CHECK(has(plan_of({.layout = layout}), "Of each stage 8 layers run again backward."));
}

TEST_CASE("the plan says how many accelerators of a domain it uses") {
  const Layout layout{.tp = 8, .dp = 16};
  CHECK(
      has(plan_of({.cluster = "gb200-nvl72", .layout = layout}), "64 of 72 accelerators are used"));
  CHECK_FALSE(has(plan_of({.layout = layout}), "accelerators are used"));
}

}  // namespace
}  // namespace orrery
