// SPDX-License-Identifier: Apache-2.0
// Tests what a page of validation says: bins, causes and tables.
#include <catch2/catch.hpp>

#include <cmath>
#include <memory>

#include "sim/validate/page/page.h"
#include "sim/validate/score/causes.h"
#include "sim/validate/score/predict.h"
#include "sim/validate/score/residuals.h"
#include "tests/paper/count_text.h"

namespace orrery {
namespace {

// Rows of a source whose experts' exchange is what the predictions miss: what was measured is
// slower by more, the larger the exchange's share of the step.
struct Runs {
  std::vector<PreparedRow> rows;
  std::vector<ScoredRow> scored;
  std::unique_ptr<SharedCluster> cluster = std::make_unique<SharedCluster>();
};

Runs some_runs() {
  Runs runs;
  runs.cluster->cluster.name = "cluster";
  constexpr int rows = 24;
  runs.rows.resize(rows);
  for (int i = 0; i < rows; ++i) {
    PreparedRow& r = runs.rows[static_cast<std::size_t>(i)];
    const bool moe = i % 2 == 0;
    r.id = "R" + std::to_string(i);
    r.source = "A <source> & more";
    r.gpu = i % 3 == 0 ? "H100" : "B200";
    r.release = moe ? "stack@2" : "stack@1";
    r.cluster = runs.cluster.get();
    r.model.name = moe ? "moe" : "dense";
    r.layout.dp = 1 << (i % 8);
    r.job.global_batch = 64;
    r.job.sequence = 4096;
    RowPrediction p;
    p.made = true;
    p.tokens_per_second_per_gpu = 1000 + i;
    p.low_tokens = 900;
    p.high_tokens = 1200;
    p.stage[Label::gemm] = Ticks{1000};
    p.stage[Label::expert_comm] = Ticks{moe ? 100 + 20 * i : 0};
    const double extra = moe ? 0.3 + 0.01 * i : 0.01;
    r.measured.tokens_per_second_per_gpu = p.tokens_per_second_per_gpu / (1 + extra);
    runs.scored.push_back(score_row(r, p));
  }
  return runs;
}

}  // namespace

TEST_CASE("every scored row is in one bin of every table", "[page]") {
  const Runs runs = some_runs();
  const auto tables = residual_tables(runs.scored, false);
  REQUIRE_FALSE(tables.empty());
  for (const ResidualTable& table : tables) {
    std::size_t rows = 0;
    for (const ResidualBin& bin : table.bins) rows += bin.errors.size();
    INFO(table.quantity);
    CHECK(rows == runs.scored.size());
    CHECK(table.bins.size() > 1);
  }
  CHECK(tables.front().quantity == "GPUs");
  CHECK(tables.front().bins.front().label == "1");
  CHECK(tables.front().bins[1].label == "2 to 8");
  CHECK(residual_tables(runs.scored, true).empty());
  CHECK(residuals_text(tables).find("2 to 8") != std::string::npos);
}

TEST_CASE("causes name what a row shares with others and what goes with the error", "[page]") {
  const Runs runs = some_runs();
  const auto worst = worst_rows(runs.scored, 5, 5);
  REQUIRE(worst.size() == 5);
  CHECK(worst[0].row->row->id == "R22");
  for (std::size_t i = 1; i < worst.size(); ++i)
    CHECK(*worst[i - 1].row->speed_error >= *worst[i].row->speed_error);
  INFO(worst[0].cause);
  CHECK(worst[0].cause.find("stack@2 on B200") != std::string::npos);
  CHECK(worst[0].cause.find("7 other rows") != std::string::npos);
  CHECK(worst[0].cause.find("too fast the more of their step is expert_comm") != std::string::npos);
  CHECK(worst[0].breakdown == "gemm 65%, expert_comm 35%");
  CHECK(worst_rows(runs.scored, 50, 2).size() == 2);
  CHECK(worst_text(worst).find("R22 +52%") != std::string::npos);
}

TEST_CASE("a page's tables hold every part, names as text", "[page]") {
  const Runs runs = some_runs();
  const std::vector<GateVerdict> gates = {
      {.gate = {"published", "speed_median", 0.1, 0.09, "2026-11-21"}, .today = 0.2}};
  const std::string page = validation_document(runs.scored, gates, {{"More", "1 < 2"}}).html();
  CHECK(count(page, "<table>") == count(page, "</table>"));
  CHECK(count(page, "<table>") == 5);  // two of groups, gates, farthest off, bins; all are scored
  CHECK(count(page, "A <source>") == 0);
  CHECK(count(page, "A &lt;source&gt; &amp; more") > 0);
  CHECK(count(page, "1 &lt; 2") == 1);
  CHECK(count(page, ">failed<") == 1);
  CHECK(validation_document({}, {}, {}).html().find("0 rows read") != std::string::npos);
}

}  // namespace orrery
