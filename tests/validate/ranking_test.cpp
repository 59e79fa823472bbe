// SPDX-License-Identifier: Apache-2.0
// Tests how predicted orders of layouts are held against measured ones, and what odd rows change.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/validate/score/odd_rows.h"
#include "sim/validate/score/ranking.h"
#include "tests/validate/scored_rows.h"

namespace orrery {
namespace {

std::vector<RankedLayout> layouts_of(const std::vector<std::pair<double, double>>& figures) {
  std::vector<RankedLayout> layouts;
  for (const auto& [predicted, measured] : figures)
    layouts.push_back({.id = std::string(1, static_cast<char>('a' + layouts.size())),
                       .predicted = predicted,
                       .measured = measured});
  return layouts;
}

// Layouts with figures between 1 and 100, some of them close to each other.
std::vector<RankedLayout> some_layouts() {
  const auto count = *rc::gen::inRange(2, 12);
  std::vector<RankedLayout> layouts;
  for (int i = 0; i < count; ++i)
    layouts.push_back({.id = std::to_string(i),
                       .predicted = *rc::gen::inRange(100, 10001) / 100.0,
                       .measured = *rc::gen::inRange(100, 10001) / 100.0});
  return layouts;
}

// Rows of one job on 8 GPUs, one for each figure.
test::ScoredRows rows_of(const std::vector<std::pair<double, double>>& figures) {
  std::vector<test::MadeRow> made;
  for (const auto& [predicted, measured] : figures)
    made.push_back({.predicted = predicted, .measured = measured});
  return test::scored_rows(made);
}

const std::vector<std::pair<double, double>> seven = {{10, 100}, {20, 200}, {30, 300}, {40, 400},
                                                      {50, 500}, {60, 600}, {70, 350}};

}  // namespace

TEST_CASE("an order without mistakes correlates fully and loses nothing") {
  CHECK(rc::check([] {
    std::vector<RankedLayout> layouts = some_layouts();
    for (RankedLayout& l : layouts) l.predicted = l.measured * l.measured;
    const OrderScore r = rank_layouts(layouts);
    RC_ASSERT(r.correlation > 1 - 1e-12);
    RC_ASSERT(r.in_order == r.pairs);
    RC_ASSERT(r.loss == 0);
  }));
}

TEST_CASE("the order alone counts, not by how much figures differ nor how rows are listed") {
  CHECK(rc::check([] {
    std::vector<RankedLayout> layouts = some_layouts();
    const OrderScore before = rank_layouts(layouts);
    for (RankedLayout& l : layouts) l.predicted = std::sqrt(l.predicted) + 7;
    std::reverse(layouts.begin(), layouts.end());
    const OrderScore after = rank_layouts(layouts);
    RC_ASSERT(std::abs(before.correlation - after.correlation) < 1e-12);
    RC_ASSERT(before.pairs == after.pairs);
    RC_ASSERT(before.in_order == after.in_order);
    RC_ASSERT(before.correlation <= 1 + 1e-12);
    RC_ASSERT(before.correlation >= -1 - 1e-12);
    RC_ASSERT(before.loss >= 0);
  }));
}

TEST_CASE("layouts that the spread does not tell apart count neither for nor against") {
  const OrderScore either = rank_layouts(layouts_of({{3, 100}, {2, 101}, {1, 50}}));
  const OrderScore other = rank_layouts(layouts_of({{2, 100}, {3, 101}, {1, 50}}));
  CHECK(either.pairs == 2);
  CHECK(either.in_order == 2);
  CHECK(either.correlation == Approx(1));
  CHECK(other.correlation == Approx(1));
  CHECK(either.first == "a");
  CHECK(either.best == "b");
  CHECK(either.loss == Approx(1.0 / 101));
  const OrderScore alike = rank_layouts(layouts_of({{1, 100}, {2, 100}, {3, 101}}));
  CHECK(alike.pairs == 0);
  CHECK(alike.correlation == 1);
}

TEST_CASE("a reversed order correlates fully the other way; equal predictions are half right") {
  const OrderScore reversed = rank_layouts(layouts_of({{1, 300}, {2, 200}, {3, 100}}));
  CHECK(reversed.correlation == Approx(-1));
  CHECK(reversed.in_order == 0);
  CHECK(reversed.loss == Approx(2.0 / 3));
  const OrderScore equal = rank_layouts(layouts_of({{1, 300}, {1, 200}}));
  CHECK(equal.in_order == 0.5);
  CHECK(equal.correlation == 0);
}

TEST_CASE("groups hold the layouts of one job and need six rows") {
  test::ScoredRows rows = rows_of(seven);
  auto groups = rank_groups(rows.scored);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].rows == 7);
  CHECK(groups[0].gpus == 8);
  CHECK(groups[0].ranking.first == "R6");
  CHECK(groups[0].ranking.best == "R5");
  CHECK(groups[0].ranking.loss == Approx(1 - 350.0 / 600));
  const auto sources = rank_sources(groups);
  REQUIRE(sources.size() == 1);
  CHECK(sources[0].worst_loss == groups[0].ranking.loss);
  CHECK(sources[0].costliest == &groups[0]);
  CHECK(ranking_text(rows.scored).find("first choice loses most (41.7%)") != std::string::npos);
  CHECK(ranking_json(rows.scored)["groups"][0]["first"] == "R6");
  // Candidates of one name but other widths are other models.
  rows.prepared[0].model.hidden = rows.prepared[1].model.hidden = 128;
  CHECK(rank_groups(rows.scored).empty());
  rows.prepared[0].model.hidden = rows.prepared[1].model.hidden = 0;
  CHECK(rank_groups(rows.scored).size() == 1);
  rows.prepared[0].job.global_batch = rows.prepared[1].job.global_batch = 128;
  CHECK(rank_groups(rows.scored).empty());
  CHECK(ranking_text(rows.scored).empty());
}

TEST_CASE("rows known to be odd stand outside the order, by source and id") {
  test::ScoredRows rows = rows_of(seven);
  const OddRows noise{
      .source = "somebody's sweep", .ids = {"R6"}, .outside = true, .reason = "a slow disk"};
  const OddRows elsewhere{.source = "another", .ids = {"R0"}, .outside = true, .reason = "x"};
  const OddRows remark{
      .source = "somebody's sweep", .ids = {"R1"}, .outside = false, .reason = "a new driver"};
  mark_odd_rows(rows.prepared, {noise, elsewhere, remark});
  CHECK(rows.prepared[0].outside.empty());
  CHECK(rows.prepared[1].outside.empty());
  CHECK(rows.prepared[1].remark == "a new driver");
  CHECK(rows.prepared[6].outside == "a slow disk");
  const auto groups = rank_groups(rows.scored);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].rows == 6);
  CHECK(groups[0].ranking.loss == 0);
  const std::string text = odd_rows_text(rows.scored);
  CHECK(text.find("R6: a slow disk") != std::string::npos);
  CHECK(text.find("R1: a new driver") != std::string::npos);
}

TEST_CASE("the shipped list of odd rows names a source, rows and a reason each time") {
  const auto odd = load_odd_rows(data_root() / "validation/odd_rows.json");
  REQUIRE_FALSE(odd.empty());
  for (const OddRows& o : odd) {
    CHECK_FALSE(o.source.empty());
    CHECK_FALSE(o.ids.empty());
    CHECK(o.reason.size() > 10);
  }
  const auto wrong = std::filesystem::temp_directory_path() / "orrery_odd_rows_test.json";
  std::ofstream(wrong) << R"({"rows": [{"source": "s", "ids": ["a"], "outside": true}]})";
  CHECK_THROWS_AS(load_odd_rows(wrong), Error);
  std::filesystem::remove(wrong);
}

}  // namespace orrery
