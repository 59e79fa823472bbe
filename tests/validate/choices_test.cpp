// SPDX-License-Identifier: Apache-2.0
// Tests what a prediction's first choice loses where published runs tried several layouts.
#include "sim/validate/score/choices.h"

#include <catch2/catch.hpp>

#include "tests/validate/scored_rows.h"

using namespace orrery;
using namespace orrery::test;

TEST_CASE("a choice is between different layouts of one job that a publication ran") {
  ScoredRows rows = scored_rows({{110, 100, 1}, {100, 120, 2}, {100, 118, 2}});
  const auto choices = published_choices(rows.scored);
  REQUIRE(choices.size() == 1);
  CHECK(choices[0].layouts.size() == 2);  // the same layout again is no choice
  CHECK(choices[0].ranking.first == "R0");
  CHECK(choices[0].ranking.best == "R1");
  CHECK(choices[0].ranking.loss == Approx(1 - 100.0 / 120));
  CHECK(choices[0].predicted_gain == Approx(0.1));

  rows.prepared[1].job.global_batch = 128;  // another job: nothing to choose from
  rows.prepared[2].sweep = true;
  CHECK(published_choices(rows.scored).empty());
  CHECK(choices_text(rows.scored).empty());
}

TEST_CASE("a wrong choice is printed, and whether the prediction could tell") {
  const std::string told = choices_text(scored_rows({{110, 100, 1}, {100, 120, 2}}).scored);
  CHECK(told.find("in 0 of 1 jobs") != std::string::npos);
  CHECK(told.find("loses 16.7%") != std::string::npos);
  CHECK(told.find("within the noise\n") == std::string::npos);
  const std::string close = choices_text(scored_rows({{101, 100, 1}, {100, 120, 2}}).scored);
  CHECK(close.find("in 1 more") != std::string::npos);
  const std::string right = choices_text(scored_rows({{90, 100, 1}, {100, 120, 2}}).scored);
  CHECK(right.find("in 1 of 1 jobs") != std::string::npos);
  CHECK(right.find("loses") == std::string::npos);
}
