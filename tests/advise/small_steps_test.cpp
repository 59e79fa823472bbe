// SPDX-License-Identifier: Apache-2.0
// Tests the ladder of small steps against running every layout that is so near.
#include "sim/advise/small_steps.h"

#include <catch2/catch.hpp>
#include <limits>

#include "sim/base/random.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/host_power.h"
#include "tests/advise/small_question.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

Question near_question(RandomStream& random) {
  const bool experts = random.below(3) == 0;
  Model model = experts ? small_expert_model() : small_dense_model();
  model.layers.assign(4 + 2 * random.below(4), 0);
  Question q = small_question(model, INT64_C(4) << random.below(3));
  q.job = small_job(random.below(3) == 0 ? 16384 : 4096, 16);
  SearchLimits& l = q.limits;
  if (random.below(3) > 0) l.offload = Offload{};
  if (random.below(2) > 0) l.bucket = Bytes(0);
  if (random.below(2) > 0) l.sequence_parallel = true;
  if (random.below(3) > 0) l.recompute = RecomputeChoice{};
  if (random.below(2) > 0) l.rank_order = RankOrder();
  if (random.below(2) > 0) l.zero_stage = 1;
  if (random.below(3) == 0) l.schedule = Schedule::one_f_one_b;
  if (experts && random.below(2) > 0) l.ep = 4;
  q.objective = random.below(3) == 0 ? Objective::energy : Objective::time;
  return q;
}

TEST_CASE("law: no layout within so many changes is better than its rung") {
  RandomStream random(fresh(2026), 23);
  int compared = 0, rungs = 0;
  for (int draw = 0; compared < 30; ++draw) {
    REQUIRE(draw < 3000);
    const Question q = near_question(random);
    const Stack stack =
        catalogue_stack(q.stack_name, q.cluster, q.model, q.job, PrecisionRecipe::bf16);
    const SearchSpace space(subject_of(q, stack), q.limits);
    if (space.leaves() < 20 || space.leaves() > 3000) continue;
    const StepContext context = step_context(q.cluster);
    const auto fits = [&](const Layout& l) {
      return memory_fits(q.model, q.job, l, stack, context.device);
    };
    const auto score_of = [&](const Layout& l) {
      const StepResult run = step(context, q.model, q.job, l, stack);
      const Seconds time = to_seconds(run.step);
      if (q.objective != Objective::energy) return time.si();
      const Watts host = host_power_per_accelerator(q.cluster);
      return (run.energy_per_gpu + host * time).si() * static_cast<double>(l.gpus());
    };
    const std::vector<Layout> all = layouts_of(space);
    const Layout now = all[random.below(all.size())];
    ++compared;
    INFO("draw " << draw << ": " << to_json_text(now));
    const Scenario like{
        .cluster = q.cluster, .model = q.model, .job = q.job, .layout = now, .stack = stack};
    const Advice advice = advise(q, {.top = 1, .threads = 2, .like = like, .changes = 3});
    const Ladder& ladder = advice.ladder;
    CHECK(ladder.asked == 3);
    if (advice.best.empty()) continue;
    REQUIRE(ladder.rungs.size() == 3);
    double before = fits(now) ? score_of(now) : std::numeric_limits<double>::infinity();
    for (std::size_t k = 1; k <= 3; ++k) {
      const Rung& rung = ladder.rungs[k - 1];
      CHECK(rung.changes == static_cast<int>(k));
      double best = std::numeric_limits<double>::infinity();
      for (const Layout& l : all)
        if (changed(now, l).size() <= k && fits(l)) best = std::min(best, score_of(l));
      if (!rung.better) {
        CHECK(best >= before * (1 - tie_tolerance) * (1 - 1e-12));
        continue;
      }
      ++rungs;
      const Layout& layout = rung.candidate.layout;
      INFO("rung " << k << ": " << to_json_text(layout));
      const double own = score_of(layout);
      CHECK(own <= best * (1 + 1e-12));
      CHECK(own < before * (1 - tie_tolerance));
      CHECK(changed(now, layout) == rung.what);
      CHECK(rung.what.size() <= k);
      CHECK(fits(layout));
      CHECK_FALSE(invalid_reason(layout, q.model, q.job, q.cluster.gpus, stack.sharding.partition));
      CHECK_FALSE(unplaceable_reason(layout, q.cluster.fabric));
      const Seconds was = to_seconds(step(context, q.model, q.job, now, stack).step);
      CHECK(rung.faster == Approx(was / rung.candidate.step_time - 1).margin(1e-9));
      before = own;
    }
  }
  CHECK(rungs > 30);
}

TEST_CASE("what means nothing in a layout is no change") {
  const Layout now{.tp = 2, .pp = 4, .vpp = 2, .dp = 2, .schedule = Schedule::interleaved};
  Layout one = now;
  CHECK(changed(now, one).empty());
  one.pp = 1;
  one.vpp = 1;
  one.dp = 8;
  one.schedule = Schedule::one_f_one_b;
  CHECK(changed(now, one) == std::vector{Decision::pp});
  one = now;
  one.tp = 1;
  one.dp = 4;
  one.sequence_parallel = false;
  CHECK(changed(now, one) == std::vector{Decision::tp});
  one = now;
  one.vpp = 4;
  CHECK(changed(now, one) == std::vector{Decision::schedule});
  one.stage_layers = {1, 2, 2, 2, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1};
  CHECK(changed(now, one) == std::vector{Decision::schedule, Decision::stages});
  one = now;
  one.cp = 2;
  one.dp = 1;
  one.context = ContextKind::all_gather;
  CHECK(changed(now, one) == std::vector{Decision::cp, Decision::context});
  one = now;
  one.recompute_modules = {RecomputeModule::mlp};  // of no recompute
  CHECK(changed(now, one).empty());
}

TEST_CASE("decisions that the question fixes elsewhere count as changes") {
  Question q = small_question(small_dense_model(), 16);
  q.limits.tp = 4;
  q.limits.micro_batch = 2;
  q.limits.bucket = Bytes(0);
  q.limits.offload = Offload{};
  const Stack stack =
      catalogue_stack(q.stack_name, q.cluster, q.model, q.job, PrecisionRecipe::bf16);
  const Scenario like{.cluster = q.cluster,
                      .model = q.model,
                      .job = q.job,
                      .layout = {.tp = 2, .pp = 4, .dp = 2, .micro_batch = 1},
                      .stack = stack};
  const Advice advice = advise(q, {.top = 1, .like = like, .changes = 3});
  CHECK(advice.ladder.forced == 2);
  REQUIRE(advice.ladder.rungs.size() == 3);
  CHECK(advice.ladder.rungs[0].difference.empty());
  for (const Rung& rung : advice.ladder.rungs)
    if (rung.better) {
      CHECK(rung.candidate.layout.tp == 4);
      CHECK(rung.candidate.layout.micro_batch == 2);
    }
}

}  // namespace
}  // namespace orrery
