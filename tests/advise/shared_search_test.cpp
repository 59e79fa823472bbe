// SPDX-License-Identifier: Apache-2.0
// Tests that a search which parts share finds what one search finds, and misses nothing.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "tests/advise/shared_tasks.h"
#include "tests/advise/small_question.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

Question random_question() {
  const bool experts = *rc::gen::arbitrary<bool>();
  Question question = small_question(experts ? small_expert_model() : small_dense_model(),
                                     *rc::gen::element<std::int64_t>(8, 16, 24, 32));
  question.job.global_batch = *rc::gen::element<std::int64_t>(24, 32, 96);
  question.objective = *rc::gen::element(Objective::time, Objective::energy);
  if (*rc::gen::arbitrary<bool>()) question.limits.zero_stage = 1;
  question.limits.micro_batch = *rc::gen::element<std::int64_t>(1, 2);
  return question;
}

AdviseOptions random_options() {
  AdviseOptions options{.top = *rc::gen::element(1, 3, 10), .threads = 1, .brief = true};
  options.variants = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) options.pareto = Front::Axis::memory;
  return options;
}

std::vector<Layout> layouts_of(const std::vector<Candidate>& candidates) {
  std::vector<Layout> layouts;
  for (const Candidate& c : candidates) layouts.push_back(c.layout);
  return layouts;
}

}  // namespace

TEST_CASE("law 14: a search in parts has the layouts of one search, in its order") {
  REQUIRE(rc::check("any number of parts, in any order", [] {
    const Question question = random_question();
    AdviseOptions options = random_options();
    const Advice alone = advise(question, options);
    std::map<std::uint64_t, std::string> known;
    const auto count = *rc::gen::element<std::uint64_t>(1, 2, 5);
    for (std::uint64_t i = count; i-- > 0;) {
      TasksInMemory part(known, i, count);
      options.tasks = &part;
      static_cast<void>(advise(question, options));
    }
    TasksInMemory merge(known, 0, 0);
    options.tasks = &merge;
    const Advice merged = advise(question, options);
    RC_ASSERT(merge.made() == 0);  // the parts left nothing
    RC_ASSERT((layouts_of(merged.best) == layouts_of(alone.best)));
    RC_ASSERT((layouts_of(merged.pareto) == layouts_of(alone.pareto)));
    for (std::size_t i = 0; i < merged.best.size(); ++i) {
      RC_ASSERT(merged.best[i].step_time == alone.best[i].step_time);
      RC_ASSERT(merged.best[i].energy_per_step == alone.best[i].energy_per_step);
      RC_ASSERT(merged.best[i].peak_memory == alone.best[i].peak_memory);
    }
    // Every layout was run, did not fit or was ruled out.
    RC_ASSERT(merged.considered == alone.considered);
    RC_ASSERT(merged.considered ==
              merged.rejected_for_memory + merged.pruned + merged.simulated + merged.left);
    RC_ASSERT(merged.left == 0);
  }));
}

TEST_CASE("where nothing fits, parts name the same larger count") {
  // Of as many slices as are ever made: those of all larger counts have their names.
  Question question =
      small_question(load_model("kimi-k2", data_root() / "workloads/catalog/models"), 8);
  question.job.global_batch = 8;
  AdviseOptions options{.threads = 1};
  const Advice alone = advise(question, options);
  REQUIRE(alone.best.empty());
  REQUIRE(alone.fits_from > 8);
  std::map<std::uint64_t, std::string> known;
  TasksInMemory part(known, 0, 1);
  options.tasks = &part;
  static_cast<void>(advise(question, options));
  TasksInMemory merge(known, 0, 0);
  options.tasks = &merge;
  CHECK(advise(question, options).fits_from == alone.fits_from);
}

TEST_CASE("a part does its own slices alone, and does none twice") {
  const Question question = small_question(small_dense_model(), 16);
  std::map<std::uint64_t, std::string> known;
  AdviseOptions options{.top = 3, .threads = 1, .brief = true};
  TasksInMemory first(known, 0, 2);
  options.tasks = &first;
  CHECK(advise(question, options).best.empty());
  const auto after_first = known.size();
  CHECK(first.made() == static_cast<int>(after_first));
  TasksInMemory again(known, 0, 2);
  options.tasks = &again;
  static_cast<void>(advise(question, options));
  CHECK(again.made() == 0);
  TasksInMemory second(known, 1, 2);
  options.tasks = &second;
  static_cast<void>(advise(question, options));
  CHECK(second.made() > 0);
  CHECK(known.size() == after_first + static_cast<std::size_t>(second.made()));
}

}  // namespace orrery
