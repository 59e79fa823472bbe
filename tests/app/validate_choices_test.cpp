// Tests what a prediction's first choice loses where published runs tried several layouts.
#include "sim/app/validate_choices.h"

#include <catch2/catch.hpp>

using namespace orrery;

namespace {

struct Run {
  std::int64_t tp;
  double predicted, measured;
};

struct Rows {
  std::vector<PreparedRow> prepared;
  std::vector<ScoredRow> scored;
};

Rows rows_of(const std::vector<Run>& runs) {
  Rows rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    PreparedRow row;
    row.id = "R" + std::to_string(i);
    row.source = "a paper";
    row.gpu = "H100";
    row.model.name = "llama";
    row.layout.tp = runs[i].tp;
    row.layout.dp = 8 / runs[i].tp;
    row.job.global_batch = 64;
    row.job.sequence = 4096;
    row.measured.tokens_per_second_per_gpu = runs[i].measured;
    rows.prepared.push_back(row);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RowPrediction prediction;
    prediction.made = true;
    prediction.tokens_per_second_per_gpu = runs[i].predicted;
    rows.scored.push_back(score_row(rows.prepared[i], prediction));
  }
  return rows;
}

}  // namespace

TEST_CASE("a choice is between different layouts of one job that a publication ran") {
  Rows rows = rows_of({{1, 110, 100}, {2, 100, 120}, {2, 100, 118}});
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
  const std::string told = choices_text(rows_of({{1, 110, 100}, {2, 100, 120}}).scored);
  CHECK(told.find("in 0 of 1 jobs") != std::string::npos);
  CHECK(told.find("loses 16.7%") != std::string::npos);
  CHECK(told.find("within the noise\n") == std::string::npos);
  const std::string close = choices_text(rows_of({{1, 101, 100}, {2, 100, 120}}).scored);
  CHECK(close.find("in 1 more") != std::string::npos);
  const std::string right = choices_text(rows_of({{1, 90, 100}, {2, 100, 120}}).scored);
  CHECK(right.find("in 1 of 1 jobs") != std::string::npos);
  CHECK(right.find("loses") == std::string::npos);
}
