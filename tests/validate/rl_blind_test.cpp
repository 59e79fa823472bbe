// SPDX-License-Identifier: Apache-2.0
// Holds ranges of RL steps to their laws: nine of ten, no row in its own range, order beyond them.
#include "sim/validate/rl/rl_blind.h"

#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/validate/rl/rl_report.h"

namespace orrery {
namespace {

const std::vector<RlRow>& shipped() {
  static const std::vector<RlRow> rows =
      shipped_rl_rows(load_aliases(data_root() / "validation/aliases.json"), 0);
  return rows;
}

std::vector<RlRow> of_model(std::vector<RlRow> rows, const std::string& model) {
  std::erase_if(rows, [&](const RlRow& r) { return r.model != model; });
  return rows;
}

TEST_CASE("ranges made of other models' errors hold nearly nine of ten RL steps") {
  const auto ranges = rl_ranges_of_others(shipped());
  for (const RlQuantity quantity : rl_quantities) {
    CHECK(covered_share(shipped(), ranges, quantity) >= 0.84);
    CHECK(covered_share(shipped(), ranges, quantity) <= 0.95);
  }
}

TEST_CASE("errors of a model do not reach the ranges that its rows are held against") {
  std::vector<RlRow> rows = shipped();
  const auto before = rl_ranges_of_others(rows);
  for (RlRow& row : rows)
    if (row.model == "qwen3-32b" && row.step_seconds) *row.step_seconds *= 10;
  const auto after = rl_ranges_of_others(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].scored()) continue;
    CAPTURE(rows[i].id);
    CHECK((after[i].high == before[i].high) == (rows[i].model == "qwen3-32b"));
  }
  CHECK_THROWS_WITH(rl_ranges_of_others(of_model(shipped(), "qwen3-32b")),
                    Catch::Contains("several models"));
}

TEST_CASE("the shipped error of RL steps is that of the shipped rows") {
  const RlError kept = load_rl_error(data_root() / "validation/rl_error.json");
  const auto found = rl_error(shipped());
  REQUIRE(found);
  CHECK(to_json_text(kept) == to_json_text(*found));
  CHECK_FALSE(rl_error({}));
}

TEST_CASE("a job of RL on a device that no measured step ran on has a wider range") {
  const RlError error = load_rl_error(data_root() / "validation/rl_error.json");
  RunKind run = rl_run(shipped().front().job);
  const RlRange known = rl_range(run, error);
  CHECK(known.widened.empty());
  CHECK(known.low < 1);
  CHECK(known.high > 1);
  CHECK(known.least_rate() * known.high == Approx(1));
  run.device = "b300-sxm";
  const RlRange other = rl_range(run, error);
  CHECK(other.high > known.high);
  CHECK(other.widened.size() == 1);
}

TEST_CASE("predictions within each other's ranges name no winner") {
  const std::vector<RlRow>& rows = shipped();
  const std::vector<RlRange> none(rows.size(), RlRange{.low = 1, .high = 1, .widened = {}});
  const std::vector<RlRange> wide(rows.size(), RlRange{.low = 0.1, .high = 10, .widened = {}});
  std::vector<RlRange> shipped_ranges = rl_ranges_of_others(rows);
  REQUIRE_FALSE(rl_pairs(rows, none).empty());
  for (const RlPair& pair : rl_pairs(rows, none)) CHECK(pair.decided);
  for (const RlPair& pair : rl_pairs(rows, wide)) CHECK_FALSE(pair.decided);
  int decided = 0;
  for (const RlPair& pair : rl_pairs(rows, shipped_ranges)) decided += pair.decided ? 1 : 0;
  CHECK(decided > 0);
}

}  // namespace
}  // namespace orrery
