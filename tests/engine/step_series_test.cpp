// SPDX-License-Identifier: Apache-2.0
// Tests that steps priced once are the steps, and that their bounds lie below them.
#include "sim/engine/step/series.h"

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/step.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/step_case.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

struct Case {
  const char* model;
  const char* cluster;
  const char* stack;
  std::int64_t gpus, sequence, batch;
};

struct Loaded {
  Cluster cluster;
  Model model;
  Job job;
  Stack stack;
};

Loaded load(const Case& c) {
  Loaded out{.cluster = load_cluster(c.cluster, c.gpus),
             .model = load_model(c.model, data_root() / "workloads/catalog/models")};
  out.job.sequence = c.sequence;
  out.job.global_batch = c.batch;
  out.stack = catalogue_stack(c.stack, out.cluster, out.model, out.job, PrecisionRecipe::bf16);
  return out;
}

const Case cases[] = {{"llama3.1-70b", "dgx-h100", "megatron-core", 128, 8192, 256},
                      {"deepseek-v3", "gb200-nvl72", "nemo", 256, 4096, 1024},
                      {"mixtral-8x7b", "dgx-h100", "hai-llm", 64, 4096, 256},
                      {"llama3-8b", "dgx-a100", "pytorch-fsdp2", 32, 8192, 64},
                      {"llama3-8b", "dgx-h100", "nanotron-debug", 32, 4096, 128}};

// Another layout with the same passes: what a series is for.
Layout vary(RandomStream& random, const Loaded& of, Layout l) {
  const Layout like = l;
  for (int tries = 0; tries < 100; ++tries) {
    l = like;
    if (l.pp > 1 && random.below(2) == 0) {
      l.schedule = static_cast<Schedule>(random.below(schedule_traits.size()));
      l.vpp = loops_over_chunks(l.schedule) ? std::int64_t{1} << (1 + random.below(3))
              : is_v_shaped(l.schedule)     ? 2
                                            : 1;
    }
    if (l.zero_stage < 3) l.zero_stage = static_cast<int>(random.below(3));
    if (random.below(2) == 0) l.bucket = Bytes(1e6 * static_cast<double>(1 + random.below(2000)));
    l.offload_weights = random.below(4) == 0;
    l.offload_optimizer = random.below(3) == 0;
    l.optimizer_offload_fraction =
        l.offload_optimizer ? 0.125 * static_cast<double>(1 + random.below(8)) : 1;
    l.offload_activations = random.below(4) == 0;
    if (l.recompute == Recompute::full)
      l.recompute_layers = static_cast<std::int64_t>(random.below(4));
    if (!invalid_reason(l, of.model, of.job, of.cluster.gpus) &&
        same_passes(l, like, of.stack, of.job))
      return l;
  }
  return like;
}

RankOrder random_order(RandomStream& random) {
  using enum Parallel;
  const std::array<std::array<Parallel, 4>, 4> orders = {
      {{tp, cp, dp, pp}, {tp, cp, pp, dp}, {tp, pp, dp, cp}, {tp, dp, cp, pp}}};
  return RankOrder(orders[random.below(orders.size())]);
}

void check_case(const Case& c, int draws) {
  INFO(c.model << " on " << c.cluster << " with " << c.stack);
  const Loaded of = load(c);
  const StepContext context = step_context(of.cluster);
  RandomStream random(fresh(11), 3);
  double closest = 0, nearest = 0;
  for (int i = 0; i < draws; ++i) {
    Layout like = test::random_layout(random, of.model, of.job, of.cluster.gpus);
    like.rank_order = random_order(random);
    if (unplaceable_reason(like, of.cluster.fabric)) like.rank_order = RankOrder();
    if (random.below(4) == 0) like.per_domain = of.cluster.fabric.scale_up.domain;
    StepSeries series(context, of.model, of.job, like, of.stack);
    StepSeries free(context, of.model, of.job, like, of.stack, Links::anywhere);
    for (int j = 0; j < 4; ++j) {
      const Layout layout = vary(random, of, like);
      INFO(to_text(layout));
      const StepResult alone = step(context, of.model, of.job, layout, of.stack);
      const StepResult shared = series.step(layout);
      CHECK(shared.step == alone.step);
      CHECK(shared.energy_per_gpu == alone.energy_per_gpu);
      const double time = to_seconds(alone.step).si();
      const StepLeast least = series.least(layout), anywhere = free.least(layout);
      CHECK(series.least(layout, {}).time <= least.time);
      CHECK(series.least(layout, {layout, layout}).time == least.time);
      CHECK(free.whole_model(layout)
                .least(layout, of.job, of.model, of.stack.sharding.partition)
                .si() <= time);
      Layout whole = layout;
      whole.recompute_layers = 0;
      if (layout.recompute_layers > 0) whole.recompute = Recompute::none;
      StepSeries bare(context, of.model, of.job, whole, of.stack, Links::anywhere);
      const Seconds mean =
          bare.whole_model(whole).least(layout, of.job, of.model, of.stack.sharding.partition);
      CHECK(mean.si() <= time);
      nearest = std::max(nearest, mean.si() / time);
      const Seconds linked =
          series.whole_model(layout).least(layout, of.job, of.model, of.stack.sharding.partition);
      if (layout.schedule != Schedule::dual_pipe && layout.schedule != Schedule::dual_pipe_v)
        CHECK(linked.si() <= time);
      // Wherever the ranks of the same layout lie.
      Layout elsewhere = whole;
      elsewhere.rank_order = random_order(random);
      if (random.below(2) == 0) elsewhere.per_domain = of.cluster.fabric.scale_up.domain;
      if (!unplaceable_reason(elsewhere, of.cluster.fabric)) {
        StepSeries other(context, of.model, of.job, elsewhere, of.stack, Links::anywhere);
        CHECK(other.whole_model(elsewhere)
                  .least(layout, of.job, of.model, of.stack.sharding.partition)
                  .si() <= time);
      }
      CHECK(least.time.si() <= time);
      CHECK(anywhere.time <= least.time);
      CHECK(least.energy_per_gpu <= alone.energy_per_gpu * (1 + 1e-12));
      CHECK(anywhere.energy_per_gpu <= least.energy_per_gpu * (1 + 1e-12));
      closest = std::max(closest, least.time.si() / time);
    }
  }
  CHECK(closest > 0.98);
  CHECK(nearest > 0.8);
}

TEST_CASE("a series' steps are the steps, and none is below its bound (law 9)", "[series]") {
  for (const Case& c : cases) check_case(c, 60);
}

// A weight gradient that takes longer than the mean of a forward and an input gradient: it fills
// the drain, so that only forwards are surely waited for.
TEST_CASE("the whole model's bound lets weight gradients run while a pipeline drains", "[series]") {
  const Loaded of = load(cases[2]);
  Layout layout{.tp = 2, .pp = 2, .vpp = 2, .dp = 16, .ep = 2, .micro_batch = 2};
  layout.zero_stage = 3;
  layout.schedule = Schedule::zero_bubble_v;
  layout.recompute = Recompute::selective;
  layout.per_domain = 8;
  REQUIRE(!invalid_reason(layout, of.model, of.job, of.cluster.gpus));
  const StepContext context = step_context(of.cluster);
  StepSeries series(context, of.model, of.job, layout, of.stack, Links::anywhere);
  const Seconds least =
      series.whole_model(layout).least(layout, of.job, of.model, of.stack.sharding.partition);
  const double time = to_seconds(series.step(layout).step).si();
  CHECK(least.si() <= time);
  CHECK(least.si() > 0.9 * time);
}

}  // namespace
}  // namespace orrery
