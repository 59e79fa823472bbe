// SPDX-License-Identifier: Apache-2.0
// Tests that values of serving stacks are fitted to what a fold leaves, and to nothing else.
#include <catch2/catch.hpp>

#include <cmath>
#include <deque>

#include "hw_models/catalog.h"
#include "sim/validate/served/served_nested.h"
#include "sim/validate/serving/serving_rows.h"

namespace orrery {
namespace {

using Catch::Matchers::WithinAbs;

// Rows of two families in two campaigns, whose TPOT follows one value and TTFT another; the truth
// lies `truth` deviations from the middles of both.
struct Made {
  std::deque<ServingRow> rows;
  ServedModel model;

  explicit Made(double truth) {
    model.names["engine"] = {"step", "front"};
    for (const char* family : {"one", "other"})
      for (const char* campaign : {"spring", "autumn"})
        for (int i = 0; i < 12; ++i) {
          ServingRow& row = rows.emplace_back();
          row.id = family + std::string(campaign) + std::to_string(i);
          row.family = family;
          row.campaign = campaign;
          const double step = 0.2 + 0.01 * i, front = 0.5 - 0.02 * i;
          row.measured = {.ttft = std::exp(front * truth), .tpot = 0.01 * std::exp(step * truth)};
          ServedSlopes slopes{
              .shipped = {.row = &row, .skipped = {}, .ttft = 1, .tpot = 0.01, .tokens_s_gpu = 1},
              .stack = "engine",
              .at = {0, 0},
              .lines = {}};
          for (auto& lines : slopes.lines) lines.below = lines.above = {0, 0};
          slopes.lines[0].below[1] = slopes.lines[0].above[1] = front;
          slopes.lines[1].below[0] = slopes.lines[1].above[0] = step;
          model.rows.push_back(slopes);
        }
  }
};

}  // namespace

TEST_CASE("a fit to served runs finds the values that made them") {
  const Made made(1.5);
  const StepFit fit = fit_served(made.model, "engine", nullptr, 1);
  CHECK_THAT(fit.deviations[0], WithinAbs(1.5, 0.1));
  CHECK_THAT(fit.deviations[1], WithinAbs(1.5, 0.1));
  CHECK(fit.after < 0.1 * fit.before);
}

TEST_CASE("what a served row is predicted without does not move its prediction") {
  Made made(1);
  const std::vector<ServedBlind> before =
      predict_served_blind(made.model, {.threads = 1, .quiet = true});
  const ServedFold fold{"one", "spring"};
  for (ServingRow& row : made.rows)
    if (row.family == fold.first || row.campaign == fold.second) {
      row.measured.ttft = 7;
      row.measured.tpot = 3;
    }
  const std::vector<ServedBlind> after =
      predict_served_blind(made.model, {.threads = 1, .quiet = true});
  REQUIRE(before.size() == after.size());
  std::size_t alone = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const ServedBlind& b = after[i];
    if (fold_of(*b.row) != fold) continue;
    ++alone;
    const double own = std::log(*measured(b.row->shipped, b.quantity));
    const double first = b.quantity == ServedQuantity::ttft
                             ? b.row->lines[0].above[1]
                             : std::log(0.01) + b.row->lines[1].above[0];
    CHECK_THAT(b.log_error + own, WithinAbs(before[i].log_error + first, 1e-9));
    // The other family of the other campaign was made by the same values.
    CHECK_THAT(before[i].log_error, WithinAbs(0, 0.1));
  }
  CHECK(alone == 24);
}

TEST_CASE("ranges of served runs hold about as many as they say") {
  Made made(0);
  // Errors of both signs, the same in every family and campaign.
  for (std::size_t i = 0; i < made.rows.size(); ++i)
    made.rows[i].measured.tpot = 0.01 * std::exp(0.02 * (static_cast<double>(i % 12) - 5.5));
  const auto blind = predict_served_blind(made.model, {.threads = 1, .quiet = true});
  const ServedError error = served_error(blind, 1);
  const NestedErrors nested = served_nested(blind, error);
  REQUIRE(nested.sets.front().set == "served TPOT");
  CHECK(nested.sets.front().numbers.groups == 4);
  CHECK(nested.sets.front().numbers.covered >= 0.8);
  CHECK_THAT(nested.sets.front().numbers.median, WithinAbs(0.06, 0.02));
  // No throughput was measured: nothing is said of its errors, and its range is that of times.
  CHECK(error.tokens_s_gpu.whole.above == error.tpot.whole.above);
  for (const NestedLine& line : nested.sets) CHECK(!line.set.starts_with("served tokens"));
}

TEST_CASE("a served row moves with the values of its stack, and lines follow it") {
  const auto folder = data_root() / "validation";
  std::vector<ServingRow> rows =
      ServingReader(load_aliases(folder / "aliases.json"))
          .read({read_csv(folder / "measurements/serving/inferencex_h100.csv")});
  std::erase_if(rows, [](const ServingRow& r) {
    return !r.skipped.empty() || r.software.stack.substr(0, 6) != "trtllm" || r.disaggregated;
  });
  REQUIRE(!rows.empty());
  rows.resize(1);
  const ServedModel model = served_model(rows, {.threads = 1, .quiet = true});
  REQUIRE(model.rows.size() == 1);
  const ServedSlopes& row = model.rows.front();
  const auto& names = model.names.at(row.stack);
  const auto launch = std::find(names.begin(), names.end(), "eager_launch") - names.begin();
  REQUIRE(launch < std::ssize(names));
  std::vector<double> moved = row.at;
  double& deviations = moved[static_cast<std::size_t>(launch)];
  deviations += 1;
  const ServedRow served =
      serve_row(rows.front(), {.name = "eager_launch", .deviations = deviations});
  CHECK(served.ttft > row.shipped.ttft);
  for (const ServedQuantity q : served_quantities)
    CHECK_THAT(row.log_predicted(q, moved), WithinAbs(std::log(predicted(served, q)), 1e-12));
}

}  // namespace orrery
