// SPDX-License-Identifier: Apache-2.0
// Tests law 9: no simulated step is shorter than its bound.
#include "sim/advise/search/bound.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/engine/step/step.h"
#include "tests/advise/small_question.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

struct Case {
  const char* model;
  const char* cluster;
  std::int64_t gpus, sequence, batch;
  PrecisionRecipe precision = PrecisionRecipe::bf16;
};

void check_admissible(const Case& c, int count) {
  const Model model = read_model(load_catalog_entry("workloads/catalog/models", "model", c.model));
  const Cluster cluster = load_cluster(c.cluster, c.gpus);
  const Job job = small_job(c.sequence, c.batch);
  Stack stack = load_stack("megatron-core",
                           {.architecture = std::string(to_text(cluster.device.architecture)),
                            .precision = c.precision,
                            .moe = model.has_experts()},
                           data_root() / "workloads/catalog/stacks");
  stack.choices = plain_stack(model).choices;
  const SearchSpace space({.model = model,
                           .job = job,
                           .fabric = cluster.fabric,
                           .stack = stack,
                           .gpus = cluster.gpus,
                           .precision = c.precision},
                          {});
  const std::vector<Layout> layouts = layouts_of(space);
  REQUIRE_FALSE(layouts.empty());
  const StepContext context = step_context(cluster);
  const StepBound bound(context, model, job, stack, layouts.front());
  RandomStream random(fresh(7), 0);
  double closest = 0;
  for (int i = 0; i < count; ++i) {
    const Layout& layout = layouts[random.below(layouts.size())];
    const double least = bound(layout).si();
    const double time = to_seconds(step(context, model, job, layout, stack).step).si();
    INFO(c.model << " on " << c.cluster << ": " << to_text(layout));
    CHECK(least > 0);
    CHECK(least <= time);
    closest = std::max(closest, least / time);
  }
  // A bound that is far from every step would prune nothing. DeepSeek-V3's random layouts wait for
  // exchanges that no bound can count on: 0.29 to 0.31 over seeds.
  INFO(c.model << " on " << c.cluster);
  CHECK(closest > 0.25);
}

TEST_CASE("law 9: the bound of a layout is never above its simulated step") {
  check_admissible({"llama3.1-405b", "dgx-h100", 1024, 8192, 1024}, 150);
  check_admissible({"llama3-8b", "dgx-a100", 16, 32768, 32}, 150);
  check_admissible({"llama3-8b", "dgx-h200", 8, 4096, 64, PrecisionRecipe::fp8_delayed}, 150);
  check_admissible({"deepseek-v3", "dgx-h100", 256, 4096, 1024}, 150);
  check_admissible({"mixtral-8x7b", "gb200-nvl72", 64, 4096, 256}, 150);
  check_admissible({"gpt3-175b", "dgx-a100", 96, 2048, 1536}, 150);
}

TEST_CASE("pipeline passes bound every division of the work over stages") {
  CHECK(pipeline_passes(1, 7) == Approx(7));
  CHECK(pipeline_passes(4, 1) == Approx(1));
  rc::check("the bound is below the longest chain of any stages", [] {
    const auto stages = *rc::gen::inRange<std::int64_t>(1, 12);
    const auto microbatches = *rc::gen::inRange<std::int64_t>(1, 100);
    const auto work = *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(stages),
                                                            rc::gen::inRange(1, 1000));
    double before = 0, longest = 0;
    for (const int w : work) {
      longest = std::max(longest, before + static_cast<double>(microbatches) * w);
      before += w;
    }
    RC_ASSERT(before * pipeline_passes(stages, microbatches) <= longest * (1 + 1e-12));
  });
}

}  // namespace
}  // namespace orrery
