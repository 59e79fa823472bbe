// SPDX-License-Identifier: Apache-2.0
// Holds the scores of served runs to their contract: every measured quantity has an entry.
#include "sim/validate/served/served_rows.h"

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/base/json/json.h"

namespace orrery {
namespace {

ServingRow llama_row() {
  ServingRow row;
  row.id = "mine:1";
  row.gpu = "h100";
  row.cluster = "dgx-h100";
  row.model = "llama3.3-70b";
  row.precision = "bf16";
  row.software.framework = "vllm";
  row.software.stack = "vllm";
  row.software.speculation = ServingSpeculation::none;
  row.engine.layout = {.tp = 4, .etp = 4};
  row.load = {.prompt_tokens = 1000, .output_tokens = 200, .concurrency = 16, .prompts = 160};
  row.measured.ttft = 0.3;
  row.measured.tpot = 0.016;
  row.measured.tokens_s_gpu = 200;
  return row;
}

JsonValue entries(const std::vector<ServedRow>& rows) {
  Json list = Json::array(), groups = Json::array();
  add_served_json(rows, load_served_error(data_root() / "validation/served_error.json"), list,
                  groups);
  return JsonValue::from(SortedJson(Json{{"rows", list}, {"groups", groups}}), "scores");
}

TEST_CASE("a served run has an entry for each quantity that was measured") {
  const std::vector<ServingRow> rows{llama_row()};
  const JsonValue found = entries(serve_rows(rows, 1, true));
  REQUIRE(found.at("rows").items().size() == 3);
  for (const JsonValue& entry : found.at("rows").items()) {
    CHECK(entry.at("id").text() == "mine:1");
    const double predicted = entry.at("predicted").number();
    CHECK(predicted > 0);
    CHECK(entry.at("low").number() < predicted);
    CHECK(entry.at("high").number() > predicted);
    CHECK(entry.at("group").at("mode").text() == "agg");
  }
  // 16 ms a token is what eight H100 with TP4 take for such a batch, within a third.
  const ServedRow served = serve_row(rows.front());
  CHECK(served.tpot == Approx(0.016).epsilon(0.33));
  CHECK(served.tokens_s_gpu > 0);
}

TEST_CASE("a run that cannot be predicted keeps its entries and says why") {
  ServingRow skipped = llama_row(), speculating = llama_row(), large = llama_row();
  skipped.skipped = "no model \"x\" in the catalogue";
  speculating.software.speculation = ServingSpeculation::mtp;
  large.engine.layout = {};
  const std::vector<ServingRow> rows{skipped, speculating, large};
  const JsonValue found = entries(serve_rows(rows, 2, true));
  REQUIRE(found.at("rows").items().size() == 9);
  for (const JsonValue& entry : found.at("rows").items()) {
    CHECK(entry.at("predicted").is_null());
    CHECK(!entry.at("skipped").text().empty());
  }
  CHECK(found.at("groups").items().empty());
}

TEST_CASE("a run with prediction modules is predicted, and its errors stand apart") {
  ServingRow row = llama_row();
  row.id = "mine:2";
  row.gpu = "h200";
  row.cluster = "dgx-h200";
  row.model = "deepseek-r1";
  row.precision = "fp8";
  row.software.framework = row.software.stack = "trtllm";
  row.engine.layout = {.tp = 8, .ep = 8, .precision = PrecisionRecipe::fp8_blockwise};
  row.load.concurrency = 4;
  row.load.prompts = 40;
  ServingRow mtp = row;
  mtp.id = "mine:3";
  mtp.software.speculation = ServingSpeculation::mtp;
  mtp.software.drafts = 3;
  const std::vector<ServingRow> rows{llama_row(), row, mtp};
  const std::vector<ServedRow> served = serve_rows(rows, 1, true);
  CHECK(served[2].skipped.empty());
  CHECK(served[2].tpot < served[1].tpot);
  CHECK(served[2].tpot > served[1].tpot / 2.82);
  std::vector<std::string> names;
  for (const JsonValue& group : entries(served).at("groups").items())
    names.push_back(group.at("name").text());
  CHECK(names == std::vector<std::string>{"h100 vllm bf16 agg", "h200 trtllm fp8 agg",
                                          "h200 trtllm fp8 agg mtp", "all with mtp", "all without",
                                          "all"});
  CHECK(entries(served).at("rows").items().back().at("group").at("speculation").text() == "mtp");
  CHECK(served_text(served).find("all with mtp") != std::string::npos);
}

TEST_CASE("a time to first token that holds a stall is not scored, the rest of its row is") {
  ServingRow row = llama_row();
  row.measured.ttft_skipped = "kernels were compiled during the run";
  const std::vector<ServingRow> rows{row};
  int scored = 0;
  for (const JsonValue& entry : entries(serve_rows(rows, 1, true)).at("rows").items())
    scored += entry.at("predicted").is_null() ? 0 : 1;
  CHECK(scored == 2);
}

TEST_CASE("a batch has one time of prompts, to its last first token, and one of tokens after it") {
  const auto served = [](double batch, ServingStatistic statistic) {
    ServingRow row = llama_row();
    row.load.concurrency = row.load.prompts = batch;
    row.engine.limits.token_budget = 2048;  // its prompts take several steps
    row.measured.statistic = statistic;
    return serve_row(row);
  };
  const ServedRow one = served(1, ServingStatistic::trial),
                  lone = served(1, ServingStatistic::mean);
  CHECK(one.ttft == Approx(lone.ttft).epsilon(1e-9));
  CHECK(one.tpot == Approx(lone.tpot).epsilon(1e-9));
  // Of 16 prompts in 8 steps of two, the last is there after 8, the mean after 4.5.
  const ServedRow batch = served(16, ServingStatistic::trial),
                  mean = served(16, ServingStatistic::mean);
  CHECK(batch.ttft > 1.5 * mean.ttft);
  CHECK(batch.ttft < 2 * mean.ttft);
  CHECK(batch.tpot < 0.95 * mean.tpot);
}

}  // namespace
}  // namespace orrery
