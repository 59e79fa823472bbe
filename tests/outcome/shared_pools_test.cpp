// SPDX-License-Identifier: Apache-2.0
// Holds jobs of RL that take turns on two pools to an event by event run, to bounds and to order.
#include "sim/outcome/rl/shared_pools.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "hw_models/catalog.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/base/random.h"
#include "sim/engine/scenario.h"
#include "tests/base/error_text.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

constexpr int draws = 400;

PoolTurn drawn_turn(RandomStream& random, bool copies) {
  const auto time = [&](double most) { return Seconds(most * random.uniform()); };
  PoolTurn turn{
      .sync = time(20), .rollout = time(300), .validation = time(20), .trains = time(200)};
  if (copies) turn.engines_copy = time(10), turn.policy_copy = time(30);
  return turn;
}

std::vector<PoolTurn> drawn_turns(RandomStream& random, std::size_t jobs, bool copies) {
  std::vector<PoolTurn> turns;
  for (std::size_t i = 0; i < jobs; ++i) turns.push_back(drawn_turn(random, copies));
  return turns;
}

// Starts each phase as soon as its pool and its responses are there, cycle after cycle, until
// cycles repeat.
Seconds run_period(const std::vector<PoolTurn>& turns) {
  constexpr int cycles = 40;
  std::vector<Seconds> responses(turns.size());
  Seconds rollout_free, training_free, last, period;
  for (int cycle = 0; cycle < cycles; ++cycle)
    for (std::size_t j = 0; j < turns.size(); ++j) {
      const PoolTurn& turn = turns[j];
      const PoolTurn& before = turns[(j + turns.size() - 1) % turns.size()];
      const bool alone = turns.size() == 1;
      const Seconds loaded =
          training_free + (alone ? Seconds(0) : before.policy_copy + turn.policy_copy);
      const Seconds awake =
          rollout_free + (alone ? Seconds(0) : before.engines_copy + turn.engines_copy);
      const Seconds trained = std::max(loaded, responses[j]) + turn.trains;
      const Seconds synced = std::max(trained, awake) + turn.sync;
      responses[j] = synced + turn.rollout + turn.validation;
      training_free = synced;
      rollout_free = responses[j];
      if (j == 0) {
        period = synced - last;
        last = synced;
      }
    }
  return period;
}

TEST_CASE("law: turns on shared pools take what a run phase by phase takes") {
  RandomStream random(1, 2);
  for (int i = 0; i < draws; ++i) {
    const auto turns = drawn_turns(random, 1 + random.below(5), i % 2 == 0);
    INFO(i << ": " << turns.size() << " jobs");
    CHECK(share_pools(turns).period.si() == Approx(run_period(turns).si()).epsilon(1e-9));
  }
}

TEST_CASE("law: a period keeps to its bounds") {
  RandomStream random(3, 4);
  for (int i = 0; i < draws; ++i) {
    const auto turns = drawn_turns(random, 2 + random.below(4), i % 2 == 0);
    const SharedPools pools = share_pools(turns);
    const double most = 1 + 1e-12;
    CHECK(pools.rollout_bound <= pools.period * most);
    CHECK(pools.training_bound <= pools.period * most);
    CHECK(pools.longest <= pools.period * most);
    CHECK(pools.rollout_busy <= most);
    CHECK(pools.training_busy <= most);
    CHECK(pools.gain <= 2 * most);  // two pools
    Seconds sum;
    for (const PoolTurn& turn : turns)
      sum += turn.alone() + 2 * turn.engines_copy + 2 * turn.policy_copy;
    CHECK(pools.period <= sum * most);
    if (pools.limit == PoolLimit::rollout)
      CHECK(pools.period.si() == Approx(pools.rollout_bound.si()));
    if (pools.limit == PoolLimit::training)
      CHECK(pools.period.si() == Approx(pools.training_bound.si()));
  }
}

TEST_CASE("law: the order of two jobs does not matter, of more only who follows whom") {
  RandomStream random(5, 6);
  for (int i = 0; i < draws; ++i) {
    auto turns = drawn_turns(random, i % 2 == 0 ? 2 : 4, true);
    const double period = share_pools(turns).period.si();
    std::rotate(turns.begin(), turns.begin() + 1, turns.end());
    CHECK(share_pools(turns).period.si() == Approx(period).epsilon(1e-12));
  }
}

TEST_CASE("law: one more job makes no other one faster") {
  RandomStream random(7, 8);
  for (int i = 0; i < draws; ++i) {
    auto turns = drawn_turns(random, 2 + random.below(4), i % 2 == 0);
    const Seconds all = share_pools(turns).period;
    turns.erase(turns.begin() + static_cast<std::ptrdiff_t>(random.below(turns.size())));
    CHECK(share_pools(turns).period <= all * (1 + 1e-12));
  }
}

TEST_CASE("law: no drawn order of turns is faster than the best one") {
  RandomStream random(9, 10);
  int better = 0;
  for (int i = 0; i < draws; ++i) {
    auto turns = drawn_turns(random, 2 + random.below(5), i % 2 == 0);
    const PoolOrder best = best_order(turns);
    const Seconds given = share_pools(turns).period;
    std::vector<PoolTurn> ordered;
    for (const std::size_t job : best.jobs) ordered.push_back(turns[job]);
    CHECK(share_pools(ordered).period == best.period);
    CHECK(best.period <= given);
    if (turns.size() == 2) CHECK(best.jobs == std::vector<std::size_t>{0, 1});
    if (best.period < given * 0.99) ++better;
    for (std::size_t n = turns.size(); n > 1; --n) std::swap(turns[n - 1], turns[random.below(n)]);
    CHECK(best.period <= share_pools(turns).period * (1 + 1e-12));
  }
  CHECK(better > draws / 10);
}

TEST_CASE("two equal jobs fill each other's bubbles, and their steps stay") {
  const PoolTurn even{.rollout = Seconds(100), .trains = Seconds(100)};
  const SharedPools pools = share_pools({even, even});
  CHECK(pools.period == even.alone());
  CHECK(pools.rollout_busy == 1);
  CHECK(pools.training_busy == 1);
  CHECK(pools.gain == 2);
  CHECK(pools.limit == PoolLimit::both);
  // A third one finds both pools in use.
  CHECK(share_pools({even, even, even}).period == Seconds(300));
  // Where rollouts are longer, training waits.
  const PoolTurn tail{.rollout = Seconds(300), .trains = Seconds(100)};
  const SharedPools waits = share_pools({tail, tail});
  CHECK(waits.limit == PoolLimit::rollout);
  CHECK(waits.period == Seconds(600));
  CHECK(waits.gain == Approx(8.0 / 6));
}

RlJob split_job() {
  const auto catalog = data_root() / "workloads/catalog";
  RlJob job;
  job.cluster = load_cluster("dgx-h100", 16);
  job.model = load_model("llama3.1-8b", catalog / "models");
  job.program = load_rl_program("nemo-rl@0.5", catalog / "rl_programs");
  job.lengths = {.prompt = 128, .response = 1000, .context = 4096};
  job.responses = 512;
  job.generation.gpus = 8;
  job.generation.memory_share = 0.7;
  job.generation.stack = catalogue_stack(job.program.serving_stack, job.cluster, job.model,
                                         {.task = Task::decode}, PrecisionRecipe::bf16);
  job.training.layout.dp = 8;
  job.training.layout.recompute = Recompute::full;
  job.training.update_batch = 256;
  job.training.stack = catalogue_stack(job.program.training_stack, job.cluster, job.model,
                                       {.task = Task::sft}, PrecisionRecipe::bf16);
  return job;
}

TEST_CASE("a job that has both pools alone takes its step, to the picosecond") {
  RlJob job = split_job();
  job.validation = {.period = 10, .prompts = 16, .together = 16};
  const RlStep step = predict_rl_step(job);
  const SharedPools alone = share_pools({pool_turn(job, step)});
  CHECK(alone.period == step.step);
  CHECK(alone.longest == step.step);
  CHECK(alone.gain == 1);
  CHECK(alone.rollout_busy < 1);
}

TEST_CASE("jobs come and go with copies of their states, which all stay in host memory") {
  const RlJob job = split_job();
  const RlStep step = predict_rl_step(job);
  const PoolTurn turn = pool_turn(job, step);
  CHECK(turn.policy_copy.si() ==
        Approx(step.passes.parameters.si() / job.program.host_copy.get().si()));
  CHECK(turn.engines_copy < turn.policy_copy);
  const PoolHosts hosts = pool_hosts({job, job}, {step, step});
  CHECK(hosts.rollout == 2 * step.rollout.weights);
  CHECK(hosts.training == 2 * (step.passes.optimizer + 2 * step.passes.parameters));
  RlJob plain = job;
  plain.training.reference = false;
  CHECK(pool_hosts({plain, job}, {step, step}).training < hosts.training);
  RlJob small = job;
  small.cluster.host.memory.value = hosts.training * (8 * 0.99);
  CHECK_THROWS_AS(pool_hosts({small, small}, {step, step}), CannotExist);
  CHECK_THROWS_WITH(pool_hosts({small, small}, {step, step}), Catch::Contains("training pool"));
  small.cluster.host.memory.value.reset();
  CHECK(pool_hosts({small, small}, {step, step}).share == Bytes(0));
}

TEST_CASE("jobs that leave no GPU idle share no pools") {
  const RlJob first = split_job();
  const auto why = [&](const RlJob& job) {
    return error_text([&] { check_shares_pools(job, first); });
  };
  CHECK_NOTHROW(check_shares_pools(first, first));
  RlJob colocated = first;
  colocated.generation.gpus = 0;
  CHECK_THAT(why(colocated), Catch::Contains("on the same GPUs"));
  RlJob off = first;
  off.steps_off = 2;
  CHECK_THAT(why(off), Catch::Contains("2 steps off"));
  RlJob larger = first;
  larger.generation.gpus = 12;
  CHECK_THAT(why(larger), Catch::Contains("expected 8 and 8"));
  RlJob fewer = first;
  fewer.cluster = with_count(fewer.cluster, 12);
  CHECK_THAT(why(fewer), Catch::Contains("8 GPUs that generate and 4 that train"));
}

}  // namespace
}  // namespace orrery
