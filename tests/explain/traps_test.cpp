// SPDX-License-Identifier: Apache-2.0
// Tests every rule for traps both ways: it fires where it should and is silent where not.
#include "sim/explain/traps.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/engine/memory_fit.h"
#include "sim/explain/what_if.h"
#include "tests/explain/whole_scenarios.h"

namespace orrery {
namespace {

std::optional<Trap> found(const Scenario& s, const std::string& id,
                          const TrapOptions& options = {}) {
  std::optional<Trap> trap;
  for (const Trap& t : find_traps(s, options)) {
    INFO(t.sentence);
    CHECK(t.sentence.back() == '.');
    CHECK_FALSE(t.remedy.empty());
    CHECK_FALSE(t.evidence.empty());
    if (t.gain) CHECK(*t.gain >= options.least_gain);
    if (t.id == id && !trap) trap = t;
  }
  return trap;
}

Scenario changed(Scenario s, const Layout& layout) {
  s.layout = layout;
  return s;
}

TEST_CASE("trap: wrappers that check collectives") {
  const Layout layout{.tp = 8, .dp = 1};
  const auto trap =
      found(whole_scenario({.stack = "nanotron-debug", .layout = layout}), "debug-wrappers");
  REQUIRE(trap);
  CHECK(*trap->gain > 1);
  CHECK(trap->sentence.find("times as fast") != std::string::npos);
  CHECK_FALSE(found(whole_scenario({.stack = "nanotron", .layout = layout}), "debug-wrappers"));
}

TEST_CASE("trap: launches that block") {
  const Layout layout{.tp = 4, .pp = 2, .dp = 1};
  const ScenarioWords words{.cluster = "dgx-a100",
                            .model = "bloom-3b",
                            .stack = "megatron-deepspeed-blocking",
                            .layout = layout,
                            .sequence = 2048};
  CHECK(found(whole_scenario(words), "blocking-launches"));
  ScenarioWords plain = words;
  plain.stack = "megatron-deepspeed@2022.02";
  CHECK_FALSE(found(whole_scenario(plain), "blocking-launches"));
}

TEST_CASE("trap: debug settings in the environment") {
  const Scenario s = whole_scenario({.layout = {.tp = 8, .dp = 1}});
  const auto detail =
      found(s, "debug-environment", {.environment = {"TORCH_DISTRIBUTED_DEBUG=DETAIL"}});
  REQUIRE(detail);
  CHECK(*detail->gain > 0.05);
  CHECK(found(s, "debug-environment", {.environment = {"CUDA_LAUNCH_BLOCKING=1"}}));
  const auto log = found(s, "debug-environment", {.environment = {"NCCL_DEBUG=INFO"}});
  REQUIRE(log);
  CHECK_FALSE(log->gain);
  CHECK_FALSE(found(s, "debug-environment",
                    {.environment = {"TORCH_DISTRIBUTED_DEBUG=OFF", "NCCL_DEBUG=WARN",
                                     "CUDA_LAUNCH_BLOCKING=0", "HOME=/root"}}));
  CHECK_FALSE(found(s, "debug-environment"));
}

TEST_CASE("trap: an old release whose successor is faster") {
  const Layout layout{.tp = 8, .pp = 2, .dp = 2};
  const auto trap =
      found(whole_scenario({.model = "gpt3-20b", .stack = "megatron-core@0.2", .layout = layout}),
            "old-release");
  REQUIRE(trap);
  CHECK(*trap->gain > 0.05);
  CHECK(trap->sentence.find("in place of 0.2") != std::string::npos);
  // What is said to be gained is what the named release gains.
  const std::string release = trap->remedy.substr(0, trap->remedy.find(' '));
  const Scenario old =
      whole_scenario({.model = "gpt3-20b", .stack = "megatron-core@0.2", .layout = layout});
  const Scenario later =
      whole_scenario({.model = "gpt3-20b", .stack = release.c_str(), .layout = layout});
  CHECK(*trap->gain == Approx(step_time(old) / step_time(later) - 1));
  const std::string newest =
      "megatron-core@" +
      stack_releases("megatron-core", data_root() / "workloads/catalog/stacks").back();
  CHECK_FALSE(
      found(whole_scenario({.model = "gpt3-20b", .stack = newest.c_str(), .layout = layout}),
            "old-release"));
}

TEST_CASE("trap: what a release gains is explained by what changes in this step") {
  int explained = 0;
  for (const char* stack : {"nemo@25.09", "nemo@25.11"}) {
    const auto trap = found(whole_scenario({.model = "qwen3-30b-a3b",
                                            .stack = stack,
                                            .layout = {.tp = 2, .pp = 8, .dp = 16, .ep = 16}}),
                            "old-release");
    if (!trap) continue;
    ++explained;
    INFO(trap->sentence);
    CHECK(trap->sentence.find(" less in ") != std::string::npos);
    for (const char* foreign : {"Blackwell", "GB200", "LoRA", "Llama", "DeepSeek", "MXFP8"})
      CHECK((trap->sentence + trap->evidence).find(foreign) == std::string::npos);
  }
  CHECK(explained > 0);
}

TEST_CASE("trap: experts launched eagerly, else any host that is waited for") {
  Scenario s = whole_scenario(
      {.model = "qwen3-30b-a3b", .stack = "automodel", .layout = {.dp = 8, .ep = 8}});
  // A slow host, so that the rule does not hang on one fit.
  s.stack = with(s.stack, {.host_speed = 0.2});
  const auto eager = found(s, "eager-experts");
  REQUIRE(eager);
  CHECK(eager->at_most);
  CHECK_FALSE(found(s, "host-bound"));
  Scenario graphs = s;
  graphs.stack = with(graphs.stack, {.whole_graphs = true});
  CHECK_FALSE(found(graphs, "eager-experts"));
  Scenario dense = whole_scenario({.stack = "pytorch-fsdp2", .layout = {.dp = 8, .zero_stage = 3}});
  CHECK_FALSE(found(dense, "eager-experts"));
  CHECK_FALSE(found(dense, "host-bound"));
  dense.stack = with(dense.stack, {.host_speed = 0.02});
  const auto bound = found(dense, "host-bound");
  REQUIRE(bound);
  CHECK(bound->at_most);
}

TEST_CASE("trap: recompute where memory has room") {
  const Scenario roomy =
      whole_scenario({.layout = {.tp = 8, .pp = 2, .dp = 1, .recompute = Recompute::full}});
  const auto trap = found(roomy, "needless-recompute");
  REQUIRE(trap);
  CHECK(*trap->gain > 0.05);
  Layout none = roomy.layout;
  none.recompute = Recompute::none;
  CHECK_FALSE(found(changed(roomy, none), "needless-recompute"));
  // The same layout on a board that only just holds it.
  const MemoryVerdict v = memory_fit(roomy.model, roomy.job, roomy.layout, roomy.stack,
                                     roomy.cluster.device.resolved());
  const Scenario tight = with(roomy, {.memory_capacity = 1.01 / (1 + v.margin)});
  CHECK_FALSE(found(tight, "needless-recompute"));
}

TEST_CASE("trap: recompute of norms that are part of linear layers") {
  Layout layout{.tp = 2, .dp = 4};
  layout.set({Recompute::selective, {RecomputeModule::layernorm}});
  CHECK(found(whole_scenario({.layout = layout}), "recompute-without-effect"));
  CHECK_FALSE(
      found(whole_scenario({.stack = "nanotron", .layout = layout}), "recompute-without-effect"));
  layout.tp = 1;
  layout.ep = 4;
  CHECK_FALSE(found(whole_scenario({.model = "qwen3-30b-a3b", .layout = layout}),
                    "recompute-without-effect"));
}

TEST_CASE("trap: experts' exchanges with nothing beside them") {
  Scenario s = whole_scenario(
      {.model = "qwen3-30b-a3b", .stack = "megatron-core@0.14", .layout = {.dp = 32, .ep = 32}});
  const auto trap = found(s, "serial-exchange");
  REQUIRE(trap);
  CHECK(trap->sentence.find("CUDA graphs") == std::string::npos);
  s.stack.communication.exchange_beside_passes = true;
  CHECK_FALSE(found(s, "serial-exchange"));
  s.stack.communication.exchange_beside_passes = false;
  CHECK_FALSE(found(changed(s, {.dp = 32, .ep = 1}), "serial-exchange"));
  s.layout.recompute = Recompute::full;
  CHECK_FALSE(found(s, "serial-exchange"));
  CHECK_FALSE(found(whole_scenario({.model = "qwen3-30b-a3b",
                                    .stack = "megatron-core@0.13",
                                    .layout = {.dp = 32, .ep = 32}}),
                    "serial-exchange"));
}

TEST_CASE("trap: tensor parallelism over scale-up domains") {
  const Scenario wide = whole_scenario({.layout = {.tp = 16, .dp = 2}});
  const auto trap = found(wide, "tensor-parallel-over-domains");
  REQUIRE(trap);
  REQUIRE(trap->gain);
  CHECK(*trap->gain > 0.05);
  CHECK_FALSE(
      found(whole_scenario({.layout = {.tp = 8, .dp = 4}}), "tensor-parallel-over-domains"));
  CHECK_FALSE(found(whole_scenario({.cluster = "gb200-nvl72", .layout = {.tp = 16, .dp = 2}}),
                    "tensor-parallel-over-domains"));
}

TEST_CASE("trap: domains of which a job uses a part") {
  const auto trap =
      found(whole_scenario({.cluster = "gb200-nvl72", .layout = {.tp = 8, .dp = 16}, .batch = 128}),
            "idle-in-domains");
  REQUIRE(trap);
  CHECK(trap->at_most);
  CHECK(*trap->gain == Approx(72.0 / 64 - 1));
  CHECK_FALSE(
      found(whole_scenario({.cluster = "gb200-nvl72", .layout = {.tp = 8, .dp = 18}, .batch = 144}),
            "idle-in-domains"));
  CHECK_FALSE(found(whole_scenario({.layout = {.tp = 8, .dp = 4}}), "idle-in-domains"));
}

TEST_CASE("trap: a format without units, or one that does not pay") {
  const Layout fp8{.dp = 8, .precision = PrecisionRecipe::fp8_delayed};
  CHECK(found(whole_scenario({.cluster = "dgx-a100", .layout = fp8}), "precision-without-units"));
  const Scenario pays = whole_scenario({.layout = fp8});
  CHECK_FALSE(found(pays, "precision-without-units"));
  CHECK_FALSE(found(pays, "precision-does-not-pay"));
  CHECK_FALSE(found(whole_scenario({.cluster = "dgx-a100", .layout = {.dp = 8}}),
                    "precision-without-units"));
  CHECK(found(whole_scenario({.cluster = "dgx-v100", .model = "gpt2", .layout = {.dp = 8}}),
              "precision-without-units"));
  // Small products: quantising costs more than it gains.
  const auto small =
      found(whole_scenario({.model = "gpt2",
                            .layout = {.dp = 8, .precision = PrecisionRecipe::fp8_current},
                            .sequence = 1024}),
            "precision-does-not-pay");
  REQUIRE(small);
  CHECK(small->sentence.find("hidden size 768") != std::string::npos);
}

TEST_CASE("trap: dimensions off the grid of tiles") {
  const Layout layout{.dp = 8, .micro_batch = 4};
  const auto gpt2 = [&](const char* stack) {
    return found(
        whole_scenario({.model = "gpt2-xl", .stack = stack, .layout = layout, .sequence = 1024}),
        "off-multiples");
  };
  const auto trap = gpt2("pytorch-fsdp2");
  REQUIRE(trap);
  CHECK_FALSE(gpt2("megatron-core"));  // which fills the vocabulary up itself
  CHECK(trap->sentence.find("50257 to 50304") != std::string::npos);
  CHECK_FALSE(found(whole_scenario({.layout = layout}), "off-multiples"));
}

TEST_CASE("trap: experts with few tokens") {
  const auto trap = found(whole_scenario({.model = "qwen3-30b-a3b",
                                          .layout = {.dp = 8, .ep = 1, .zero_stage = 3},
                                          .sequence = 1024}),
                          "few-tokens-per-expert");
  REQUIRE(trap);
  CHECK(trap->sentence.find("rows") != std::string::npos);
  CHECK_FALSE(found(whole_scenario({.model = "qwen3-30b-a3b",
                                    .layout = {.dp = 8, .ep = 8, .micro_batch = 2},
                                    .sequence = 8192}),
                    "few-tokens-per-expert"));
  CHECK_FALSE(
      found(whole_scenario({.layout = {.dp = 8}, .sequence = 128}), "few-tokens-per-expert"));
}

TEST_CASE("traps are told by gain, small ones not at all") {
  const Scenario s = whole_scenario(
      {.stack = "nanotron-debug", .layout = {.tp = 8, .recompute = Recompute::full}, .batch = 16});
  const auto all = find_traps(s);
  REQUIRE(all.size() >= 2);
  for (std::size_t i = 1; i < all.size(); ++i)
    CHECK(all[i - 1].gain.value_or(-1) >= all[i].gain.value_or(-1));
  const auto few = find_traps(s, {.least_gain = 1});
  CHECK(few.size() < all.size());
}

}  // namespace
}  // namespace orrery
