// SPDX-License-Identifier: Apache-2.0
// Tests that listed layouts are as simple as a tie allows, and say what they gave up.
#include "sim/advise/simplify.h"

#include <catch2/catch.hpp>
#include <set>

#include "sim/base/random.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/host_power.h"
#include "tests/advise/small_question.h"
#include "tests/base/fresh_seed.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

// Sizes fixed, settings free, so that the grid is small and every knob turns somewhere.
Question knob_question(RandomStream& random) {
  const bool experts = random.below(3) == 0;
  Question q = small_question(experts ? small_expert_model() : small_dense_model(), 16);
  const char* clusters[] = {"dgx-h100", "gb200-nvl72", "h100-roce"};
  q.cluster = load_cluster(clusters[random.below(3)], 32);
  q.job = small_job(random.below(2) == 0 ? 8192 : 4096, 64);
  const char* stacks[] = {"megatron-core", "nemo", "pytorch-fsdp2", "hai-llm"};
  q.stack_name = stacks[random.below(4)];
  SearchLimits& l = q.limits;
  l.tp = INT64_C(1) << random.below(3);
  l.pp = INT64_C(1) << random.below(3);
  l.cp = random.below(2) == 0 ? 1 : 2;
  l.micro_batch = INT64_C(1) << random.below(2);
  if (experts) l.ep = 4;
  if (experts) l.etp = 1;
  if (random.below(2) == 0) l.schedule = Schedule::one_f_one_b;
  if (random.below(4) == 0) l.bucket = Bytes(200e6);
  if (random.below(3) == 0) l.offload = Offload{.optimizer = random.below(2) == 0};
  q.objective = random.below(3) == 0 ? Objective::energy : Objective::time;
  return q;
}

std::set<std::string> grid_of(const Question& q, const Stack& stack) {
  const ResolvedDevice device = q.cluster.device.resolved();
  const StepContext context = step_context(q.cluster);
  SearchSubject subject = subject_of(q, stack);
  subject.offload = device.host_bandwidth > BytesPerSecond(0);
  subject.offload_optimizer = subject.offload && context.host_memory_bandwidth > BytesPerSecond(0);
  std::set<std::string> grid;
  for (const Layout& layout : layouts_of(SearchSpace(subject, q.limits)))
    grid.insert(to_json_text(layout));
  return grid;
}

struct Judge {
  const Question& question;
  const Stack& stack;
  StepContext context = step_context(question.cluster);
  ResolvedDevice device = context.device;

  bool fits(const Layout& layout) const {
    return memory_fits(question.model, question.job, layout, stack, device);
  }
  double score(const Layout& layout) const {
    const StepResult run = step(context, question.model, question.job, layout, stack);
    if (question.objective != Objective::energy) return to_seconds(run.step).si();
    const Watts host = host_power_per_accelerator(question.cluster);
    return (run.energy_per_gpu + host * to_seconds(run.step)).si() *
           static_cast<double>(layout.gpus()) / tokens_per_step(question.job, 1);
  }
};

void check_laws(const Judge& judge, const std::set<std::string>& grid, const Simplified& s,
                double tie) {
  const Layout& exact = s.exact.candidate.layout;
  const Layout& shown = s.shown.candidate.layout;
  const double most = s.exact.score * (1 + tie);
  CHECK(grid.contains(to_json_text(shown)));
  CHECK(judge.fits(shown));
  CHECK(judge.score(shown) == Approx(s.shown.score).epsilon(1e-12));
  CHECK(s.shown.score <= most);
  CHECK(shape_of(exact) == shape_of(shown));
  double gains = 1;
  for (const LeftAtDefault& l : s.left) {
    INFO(l.setting);
    gains *= 1 + l.gain;
    CHECK_FALSE(simpler(exact, l.knob, judge.stack).empty());
  }
  CHECK(gains == Approx(s.shown.score / s.exact.score).epsilon(1e-12));
  if (s.left.empty()) CHECK(exact == shown);
  // Whatever differs from the default still is there for a reason.
  for (int k = 0; k < knob_count; ++k)
    for (const Layout& one : simpler(shown, static_cast<Knob>(k), judge.stack)) {
      INFO(to_text(static_cast<Knob>(k)) << " of " << to_json_text(shown));
      const bool possible = grid.contains(to_json_text(one)) && judge.fits(one);
      if (possible) CHECK(judge.score(one) > most);
    }
}

TEST_CASE("laws of simpler layouts, on random questions") {
  RandomStream random(fresh(2026), 22);
  int compared = 0, taken_back = 0;
  std::set<Knob> knobs;
  for (int draw = 0; compared < 80; ++draw) {
    REQUIRE(draw < 2000);
    const Question q = knob_question(random);
    AdviseOptions options{.top = 4, .threads = 2, .brief = true};
    const double reserves[] = {0, 0.4, 0.7, 0.85};
    options.memory_reserve = reserves[random.below(4)];
    const Stack stack =
        catalogue_stack(q.stack_name, q.cluster, q.model, q.job, PrecisionRecipe::bf16);
    const SearchSpace space(subject_of(q, stack), q.limits);
    if (space.leaves() == 0 || space.leaves() > 24000) continue;
    const Advice exact = advise(q, options);
    CHECK(exact.simplified.empty());
    // Also more than a tie, so that more is taken back.
    options.tie = random.below(2) == 0 ? tie_tolerance : 0.03;
    const Advice shown = advise(q, options);
    if (exact.best.empty()) continue;
    ++compared;
    INFO("draw " << draw << ", " << q.stack_name << " on " << q.cluster.name);
    REQUIRE(shown.simplified.size() == exact.best.size());
    REQUIRE(shown.best.size() == exact.best.size());
    CHECK(shown.simulated == exact.simulated);
    Judge judge{.question = q, .stack = stack};
    judge.device.memory_capacity *= 1 - options.memory_reserve;
    const std::set<std::string> grid = grid_of(q, stack);
    std::set<std::string> was, is;
    for (const Candidate& c : exact.best) was.insert(to_json_text(c.layout));
    for (std::size_t i = 0; i < shown.simplified.size(); ++i) {
      const Simplified& s = shown.simplified[i];
      is.insert(to_json_text(s.exact.candidate.layout));
      CHECK(shown.best[i].layout == s.shown.candidate.layout);
      check_laws(judge, grid, s, options.tie);
      for (const LeftAtDefault& l : s.left) knobs.insert(l.knob);
      taken_back += static_cast<int>(s.left.size());
      if (i == 0) continue;
      // The first may lead without being the fastest: the rest is in order.
      const Simplified& before = shown.simplified[i - 1];
      if (i > 1) CHECK(before.shown.score <= s.shown.score);
      // What changed places was a tie.
      CHECK(before.exact.score <= s.exact.score * (1 + options.tie) * (1 + options.tie));
      const Simplified& first = shown.simplified.front();
      CHECK(first.shown.score <= s.shown.score * (1 + options.tie));
      const auto special = [&](const Simplified& of) {
        return special_settings(of.shown.candidate.layout, stack);
      };
      if (s.shown.score < first.shown.score) CHECK(special(first) < special(s));
    }
    CHECK(was == is);
  }
  CHECK(taken_back > 20);
  CHECK(knobs.size() > 3);
}

TEST_CASE("of layouts that tie the one with the fewest special settings leads") {
  // With two sequences a microbatch the optimizer must lie in host memory, for a gain below 2%.
  Question q =
      small_question(load_model("500b-dense", data_root() / "workloads/catalog/models"), 256);
  q.cluster = load_cluster("gb200-nvl72", 256);
  q.job = small_job(8192, 512);
  q.limits.tp = 8;
  q.limits.pp = 4;
  q.limits.cp = 2;
  q.limits.vpp = 16;
  AdviseOptions options{.top = 4, .memory_reserve = 0.05, .brief = true};
  const Advice exact = advise(q, options);
  REQUIRE(exact.best.size() == 4);
  CHECK(exact.best[0].layout.offload_optimizer);
  options.tie = 0.02;
  const Advice shown = advise(q, options);
  CHECK_FALSE(shown.best[0].layout.offload_optimizer);
  CHECK(shown.best[1].layout.offload_optimizer);
  CHECK(shown.best[1].step_time < shown.best[0].step_time);
  CHECK(shown.best[0].step_time < shown.best[1].step_time * (1 + options.tie));
  CHECK(special_settings(shown.best[0].layout, shown.stack) <
        special_settings(shown.best[1].layout, shown.stack));
}

TEST_CASE("every setting is listed as it was found where that is asked for") {
  Question q = small_question(small_dense_model(), 16);
  q.limits.tp = 2;
  q.limits.pp = 2;
  AdviseOptions options{.top = 3, .brief = true};
  const auto layouts = [&] {
    std::string text;
    for (const Candidate& c : advise(q, options).best) text += to_json_text(c.layout) + "\n";
    return text;
  };
  options.variants = true;
  const std::string variants = layouts();
  options.variants = false;
  options.pareto = Front::Axis::memory;
  const std::string front = layouts();
  options.tie = 0.5;
  CHECK(layouts() == front);
  options.pareto = {};
  options.variants = true;
  CHECK(layouts() == variants);
  // With so large a tie every setting goes back, so that the test can fail.
  options.variants = false;
  CHECK(layouts() != front);
}

TEST_CASE("a setting that the question fixes is not taken back") {
  Question q = small_question(small_dense_model(), 16);
  q.limits.bucket = Bytes(100e6);
  q.limits.offload = Offload{.optimizer = true};
  q.limits.zero_stage = 2;
  const Advice advice = advise(q, {.top = 3, .tie = 0.5, .brief = true});
  REQUIRE_FALSE(advice.best.empty());
  for (const Candidate& c : advice.best) {
    CHECK(c.layout.bucket == Bytes(100e6));
    CHECK(c.layout.offload_optimizer);
    CHECK(c.layout.zero_stage == 2);
  }
}

TEST_CASE("what is simpler differs in one setting and comes to an end") {
  const Stack stack = small_stack(small_dense_model());
  Layout layout{.tp = 2,
                .pp = 2,
                .dp = 2,
                .cp = 2,
                .sequence_parallel = !stack.defaults.sequence_parallel,
                .zero_stage = 3,
                .shard_group = 2,
                .recompute = Recompute::selective,
                .recompute_modules = {RecomputeModule::mlp, RecomputeModule::layernorm},
                .context = ContextKind::hierarchical,
                .context_inner = 2,
                .offload_optimizer = true,
                .offload_weights = true,
                .stage_layers = {7, 9},
                .per_domain = 4,
                .bucket = Bytes(1e9)};
  layout.rank_order = RankOrder({Parallel::tp, Parallel::pp, Parallel::cp, Parallel::dp});
  for (int k = 0; k < knob_count; ++k) {
    const auto knob = static_cast<Knob>(k);
    INFO(to_text(knob));
    const std::vector<Layout> first = simpler(layout, knob, stack);
    REQUIRE_FALSE(first.empty());
    for (const Layout& one : first) {
      CHECK_FALSE(one == layout);
      for (int other = 0; other < knob_count; ++other)
        if (other != k)
          CHECK(simpler(one, static_cast<Knob>(other), stack).size() ==
                simpler(layout, static_cast<Knob>(other), stack).size());
    }
    CHECK(simpler(first.front(), knob, stack).empty());
  }
}

}  // namespace
}  // namespace orrery
