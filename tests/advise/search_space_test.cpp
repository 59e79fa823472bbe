// Tests the search space: the documented grid exactly, each layout once, always in the same order.
#include "sim/advise/search_space.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/advise/small_question.h"

namespace orrery {
namespace {

// A stack that has every schedule.
Stack every_schedule(const Model& model) {
  Stack stack = small_stack(model);
  stack.schedules.clear();
  return stack;
}

std::vector<std::string> all_layouts(SearchSpace space) {
  std::vector<std::string> texts;
  while (auto layout = space.next()) texts.push_back(to_json_text(*layout));
  return texts;
}

std::vector<std::string> search(const Model& model, const Job& job, std::int64_t gpus,
                                const SearchLimits& limits = {}) {
  return all_layouts(SearchSpace(model, job, gpus, 8, limits, every_schedule(model)));
}

// Which schedules, chunks, sharding and exchange the documentation allows, point by point.
bool in_grid(const Layout& l, const Model& model, const Job& job) {
  const std::int64_t fullest = (model.layer_count() + l.pp - 1) / l.pp;
  const bool experts = model.has_experts();
  if (l.pp == 1 && (l.schedule != Schedule::one_f_one_b || l.vpp != 1)) return false;
  if (l.schedule == Schedule::interleaved) {
    if (l.vpp < 2 || l.vpp > 8 || fullest % l.vpp != 0) return false;
  } else if (is_v_shaped(l.schedule)) {
    if (l.vpp != 2 || fullest < 2) return false;
  } else if (l.vpp != 1) {
    return false;
  }
  if ((l.schedule == Schedule::dual_pipe || l.schedule == Schedule::dual_pipe_v) && !experts)
    return false;
  if (l.zero_stage == 3 && (l.pp > 1 || l.dp * l.cp == 1)) return false;
  if (l.shard_group > 0) {
    if (l.zero_stage != 3 || l.shard_group * l.tp > 8 || l.shard_group >= l.dp * l.cp) return false;
    for (std::int64_t larger = l.shard_group + 1; larger * l.tp <= 8; ++larger)
      if (l.dp * l.cp % larger == 0) return false;
    if (l.shard_group == 1) return false;
  }
  if (l.cp > 1 && (job.sequence < 8192 || job.sequence / l.cp < 4096)) return false;
  if (l.cp == 1 && l.context != ContextKind::ring) return false;
  if (l.context == ContextKind::hierarchical) {
    // The most neighbours that divide cp and lie in a domain of 8.
    if (l.context_inner * l.tp > 8) return false;
    for (std::int64_t larger = l.context_inner + 1; larger * l.tp <= 8; ++larger)
      if (l.cp % larger == 0) return false;
  } else if (l.context_inner > 0) {
    return false;
  }
  if (!experts) return l.ep == 1 && l.etp == 1;
  if (l.etp != 1 && l.etp != l.tp) return false;
  return model.max_experts() % l.ep == 0 && l.dp * l.cp * l.tp % (l.ep * l.etp) == 0;
}

// Every combination of every dimension, filtered by the documentation and by validity.
std::set<std::string> brute_force(const Model& model, const Job& job, std::int64_t gpus) {
  std::set<std::string> found;
  const std::vector<std::int64_t> powers = {1, 2, 4, 8, 16};
  Layout l;
  for (l.tp = 1; l.tp <= 8; ++l.tp)
    for (std::int64_t cp : powers)
      for (l.pp = 1; l.pp <= model.layer_count(); ++l.pp) {
        if (gpus % (l.tp * cp * l.pp) != 0) continue;
        l.cp = cp;
        l.dp = gpus / (l.tp * l.cp * l.pp);
        l.sequence_parallel = l.tp > 1;
        for (l.ep = 1; l.ep <= 8; ++l.ep)
          for (l.etp = 1; l.etp <= 8; ++l.etp)
            for (int s = 0; s < 7; ++s)
              for (l.vpp = 1; l.vpp <= 8; ++l.vpp)
                for (std::int64_t micro_batch : powers)
                  for (int zero : {1, 3})
                    for (l.shard_group = 0; l.shard_group <= (zero == 3 ? 8 : 0); ++l.shard_group)
                      for (int recompute = 0; recompute < 3; ++recompute)
                        for (int context = 0; context < 4 + 3; ++context) {
                          l.schedule = static_cast<Schedule>(s);
                          if (l.schedule == Schedule::gpipe) continue;
                          l.micro_batch = micro_batch;
                          l.zero_stage = zero;
                          l.recompute = static_cast<Recompute>(recompute);
                          // Hierarchical with 2, 4 and 8 neighbours.
                          l.context = static_cast<ContextKind>(std::min(context, 3));
                          l.context_inner = context < 4 ? 0 : 1LL << (context - 3);
                          if (in_grid(l, model, job) && !invalid_reason(l, model, job, gpus))
                            found.insert(to_json_text(l));
                        }
      }
  return found;
}

void check_equals_brute_force(const Model& model, const Job& job, std::int64_t gpus) {
  const std::vector<std::string> layouts = search(model, job, gpus);
  const std::set<std::string> distinct(layouts.begin(), layouts.end());
  CHECK(layouts.size() == distinct.size());
  CHECK_FALSE(layouts.empty());
  CHECK(distinct == brute_force(model, job, gpus));
}

TEST_CASE("the space is the documented grid, each valid layout once") {
  SECTION("dense, short sequences") {
    check_equals_brute_force(small_dense_model(), small_job(), 16);
  }
  SECTION("dense, context parallel") {
    check_equals_brute_force(small_dense_model(), small_job(16384), 8);
  }
  SECTION("experts") { check_equals_brute_force(small_expert_model(), small_job(), 8); }
  SECTION("a count with odd divisors") {
    check_equals_brute_force(small_dense_model(), small_job(4096, 48), 24);
  }
}

TEST_CASE("the order is the same every time and a copy goes on where it was") {
  const Model model = small_expert_model();
  CHECK(search(model, small_job(), 16) == search(model, small_job(), 16));
  SearchSpace space(model, small_job(), 16, 8, {}, every_schedule(model));
  for (int i = 0; i < 100; ++i) space.next();
  SearchSpace copy = space;
  CHECK(all_layouts(space) == all_layouts(copy));
}

TEST_CASE("limits give exactly the layouts of the grid that have the fixed values") {
  const Model model = small_expert_model();
  SearchLimits limits;
  limits.tp = 2;
  limits.pp = 4;
  limits.micro_batch = 1;
  limits.recompute = RecomputeChoice{.recompute = Recompute::selective};
  std::vector<std::string> expected;
  SearchSpace whole(model, small_job(), 16, 8, {}, every_schedule(model));
  while (auto l = whole.next())
    if (l->tp == 2 && l->pp == 4 && l->micro_batch == 1 && l->recompute == Recompute::selective)
      expected.push_back(to_json_text(*l));
  CHECK_FALSE(expected.empty());
  CHECK(search(model, small_job(), 16, limits) == expected);
}

TEST_CASE("each limit holds for every layout") {
  const Model model = small_dense_model();
  SearchLimits limits;
  limits.schedule = Schedule::interleaved;
  limits.vpp = 2;
  SearchSpace space(model, small_job(), 16, 8, limits, every_schedule(model));
  int count = 0;
  while (auto l = space.next()) {
    ++count;
    CHECK(l->schedule == Schedule::interleaved);
    CHECK(l->vpp == 2);
  }
  CHECK(count > 0);

  limits = {};
  limits.zero_stage = 2;
  limits.precision = PrecisionRecipe::fp8_delayed;
  limits.optimizer = Optimizer::adam_bf16;
  SearchSpace other(model, small_job(), 16, 8, limits, every_schedule(model));
  while (auto l = other.next()) {
    CHECK(l->zero_stage == 2);
    CHECK(l->precision == PrecisionRecipe::fp8_delayed);
    CHECK(l->optimizer == Optimizer::adam_bf16);
  }
}

TEST_CASE("limits that no layout meets leave an empty space with a reason") {
  const Model model = small_dense_model();
  SearchLimits limits;
  limits.tp = 6;
  SearchSpace space(model, small_job(), 16, 8, limits, every_schedule(model));
  CHECK_FALSE(space.next().has_value());
  CHECK(space.invalid() > 0);
  CHECK(space.invalid_example().find("6") != std::string::npos);
}

TEST_CASE("a search keeps to the schedules that the stack has, unless one is asked for") {
  const Model model = small_dense_model();
  const Job job = small_job();
  Stack stack = small_stack(model);
  stack.schedules = {Schedule::one_f_one_b, Schedule::interleaved};
  SearchSpace space(model, job, 16, 8, {}, stack);
  std::set<Schedule> tried;
  while (auto layout = space.next()) tried.insert(layout->schedule);
  CHECK(tried == std::set<Schedule>{Schedule::one_f_one_b, Schedule::interleaved});
  SearchLimits limits;
  limits.schedule = Schedule::zero_bubble;
  SearchSpace asked(model, job, 16, 8, limits, stack);
  const auto first = asked.next();
  REQUIRE(first);
  CHECK(first->schedule == Schedule::zero_bubble);
}

TEST_CASE("only one spelling of layouts that mean the same") {
  const Model model = small_expert_model();
  SearchSpace space(model, small_job(), 16, 8, {}, every_schedule(model));
  while (auto l = space.next()) {
    if (l->tp == 1) CHECK_FALSE(l->sequence_parallel);
    if (l->schedule != Schedule::interleaved) CHECK(l->vpp == (is_v_shaped(l->schedule) ? 2 : 1));
    if (l->dp * l->cp == 1) CHECK(l->zero_stage == 1);
    CHECK(l->gpus() == 16);
  }
}

}  // namespace
}  // namespace orrery
