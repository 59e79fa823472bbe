// SPDX-License-Identifier: Apache-2.0
// Tests that the grid holds what a program offers: all sizes that divide, all shards, all offloads.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "hw_models/catalog.h"
#include "sim/advise/space/left_out.h"
#include "sim/engine/cluster.h"
#include "sim/engine/scenario.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// A question as a search space sees it.
struct Asked {
  Cluster cluster;
  Model model;
  Job job;
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  Stack stack;
  SearchSubject subject() const {
    return {.model = model,
            .job = job,
            .fabric = cluster.fabric,
            .stack = stack,
            .gpus = cluster.gpus,
            .precision = precision};
  }
};

Asked asked(const char* model, const char* cluster, std::int64_t gpus, std::int64_t batch,
            const char* stack = "nemo", PrecisionRecipe precision = PrecisionRecipe::bf16) {
  Asked a{.cluster = load_cluster(cluster, gpus),
          .model = load_model(model, data_root() / "workloads/catalog/models"),
          .job = {.sequence = 8192, .global_batch = batch},
          .precision = precision};
  a.stack = catalogue_stack(stack, a.cluster, a.model, a.job, precision);
  return a;
}

// Whether the grid has a layout with these sizes and settings, whatever its others are.
bool holds(const Asked& a, const Layout& wanted) {
  const SearchSpace space(a.subject(), {});
  return std::any_of(space.families().begin(), space.families().end(), [&](const Family& f) {
    const bool sizes = f.base.tp == wanted.tp && f.base.pp == wanted.pp && f.base.cp == wanted.cp &&
                       f.base.ep == wanted.ep;
    const auto micro = [&](const MicroBatchOption& m) { return m.size == wanted.micro_batch; };
    const auto shard = [&](const ShardOption& s) {
      return s.group == wanted.shard_group && std::find(s.zero_stages.begin(), s.zero_stages.end(),
                                                        wanted.zero_stage) != s.zero_stages.end();
    };
    const auto again = [&](const RecomputeOption& r) {
      return r.choice.recompute == wanted.recompute && r.choice.modules == wanted.recompute_modules;
    };
    return sizes && std::any_of(f.micro_batches.begin(), f.micro_batches.end(), micro) &&
           std::any_of(f.shards.begin(), f.shards.end(), shard) &&
           std::any_of(f.recomputes.begin(), f.recomputes.end(), again) &&
           std::find(f.offloads.begin(), f.offloads.end(), offload_of(wanted)) != f.offloads.end();
  });
}

std::set<std::int64_t> context_sizes_of(const Asked& a) {
  const SearchSpace space(a.subject(), {});
  std::set<std::int64_t> sizes;
  for (const Family& f : space.families()) sizes.insert(f.base.cp);
  return sizes;
}

TEST_CASE("every number of context ranks that leaves a rank 128 tokens is in the grid") {
  CHECK(context_sizes_of(asked("llama3.1-405b", "dgx-h100", 8192, 2048)) ==
        std::set<std::int64_t>{1, 2, 4, 8, 16, 32, 64});
  CHECK(context_sizes_of(asked("llama3.1-70b", "dgx-h100", 96, 96)) ==
        std::set<std::int64_t>{1, 2, 4, 8, 16, 32});
  Asked third = asked("llama3.1-70b", "dgx-h100", 96, 96);
  third.job.sequence = 12288;
  CHECK(context_sizes_of(third) ==
        std::set<std::int64_t>{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96});
}

TEST_CASE("NVIDIA's own recipes of Megatron-FSDP are in the grid") {
  // Megatron-Bridge's scripts/performance at v0.2.0 to v0.6.0 (NVIDIA-NeMo/Megatron-Bridge): Llama
  // 3 70B on GB200 with activations in host memory, Llama 3.1 405B on GB300 with tp 2, DeepSeek-V3
  // on GB300 with ep 64 and parts of a layer run again.
  CHECK(holds(asked("llama3-70b", "gb200-nvl72", 64, 256),
              {.dp = 64, .zero_stage = 3, .offload_activations = true}));
  CHECK(holds(asked("llama3-70b", "gb200-nvl72", 64, 256, "nemo", PrecisionRecipe::fp8_current),
              {.dp = 64, .micro_batch = 2, .zero_stage = 3, .offload_activations = true}));
  CHECK(holds(asked("llama3-8b", "dgx-h100", 8, 128, "nemo", PrecisionRecipe::fp8_current),
              {.dp = 8, .zero_stage = 3}));
  CHECK(holds(asked("llama3.1-405b", "gb300-nvl72", 128, 768),
              {.tp = 2, .dp = 64, .zero_stage = 3, .offload_activations = true}));
  Layout experts{.dp = 64, .ep = 64, .micro_batch = 2, .zero_stage = 3};
  RecomputeModules modules;
  modules.add(RecomputeModule::moe_act);
  modules.add(RecomputeModule::mla_up_proj);
  modules.add(RecomputeModule::layernorm);
  experts.set({Recompute::selective, modules});
  CHECK(holds(asked("deepseek-v3", "gb300-nvl72", 64, 256), experts));
  CHECK(holds(asked("llama3.1-405b", "dgx-h100", 1024, 512, "megatron-core@0.14"),
              {.tp = 8, .dp = 128, .zero_stage = 2}));
}

TEST_CASE("what a program does not take beside other settings is not in the grid") {
  const Asked a = asked("llama3-70b", "gb200-nvl72", 64, 256);
  CHECK_FALSE(holds(a, {.pp = 2, .dp = 32, .zero_stage = 3}));
  CHECK_FALSE(holds(a, {.pp = 2, .dp = 32, .zero_stage = 1, .offload_activations = true}));
  Layout again{.dp = 64, .zero_stage = 1, .offload_activations = true};
  again.recompute = Recompute::full;
  CHECK_FALSE(holds(a, again));
  CHECK_FALSE(holds(asked("llama3-70b", "gb200-nvl72", 64, 256, "nemo@24.09"),
                    {.dp = 64, .zero_stage = 3}));
}

TEST_CASE("no graphs of parts of a layer where Megatron shards gradients") {
  const Asked a = asked("qwen3-30b-a3b", "gb200-nvl72", 64, 256, "megatron-core");
  REQUIRE(a.stack.host.launch == LaunchMode::scoped_graph);
  CHECK(launch_mode(a.stack, {.dp = 64, .zero_stage = 1}) == LaunchMode::scoped_graph);
  CHECK(launch_mode(a.stack, {.dp = 64, .zero_stage = 2}) == LaunchMode::eager);
  CHECK(launch_mode(a.stack, {.dp = 64, .zero_stage = 3}) == LaunchMode::eager);
}

TEST_CASE("what the grid leaves out is named, and what a limit fixes is not") {
  const Asked a = asked("llama3.1-405b", "dgx-h100", 1024, 512);
  const auto names = [&](const SearchLimits& limits, const std::string& part) {
    const std::vector<std::string> all = left_out(a.subject(), limits);
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& one) { return one.find(part) != std::string::npos; });
  };
  CHECK(names({}, "context ranks of fewer than 128 tokens"));
  CHECK_FALSE(names({.cp = 2}, "context ranks"));
  CHECK(names({}, "ZeRO-3 beside pipelines"));
  CHECK_FALSE(names({.pp = 1}, "ZeRO-3 beside pipelines"));
  CHECK(names({}, "more than 16 chunks a stage"));
  CHECK_FALSE(names({.vpp = 2}, "chunks a stage"));
}

}  // namespace
}  // namespace orrery
