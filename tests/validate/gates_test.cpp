// SPDX-License-Identifier: Apache-2.0
// Tests that gates hold what predictions reached, and are only ever tightened.
#include <catch2/catch.hpp>

#include <filesystem>

#include "sim/base/errors/check.h"
#include "sim/base/output_file.h"
#include "sim/base/random.h"
#include "sim/validate/score/gates.h"
#include "tests/base/scratch_folder.h"

namespace orrery {
namespace {

GateFile some_gates() {
  return {.relative_margin = 0.1,
          .absolute_margin = 0.003,
          .gates = {{"published", "speed_median", 0.06, 0.055, "2026-11-01"},
                    {"published", "speed_p90", 0.2, 0.18, "2026-11-01"},
                    {"gone", "speed_median", 0.1, 0.09, "2026-11-01"}}};
}

std::vector<GroupFigures> figures(double median, double p90) {
  return {
      {.group = "published", .rows = 10, .figures = {{"speed_median", median}, {"speed_p90", p90}}},
      {.group = "new", .rows = 3, .figures = {{"speed_median", 0.02}}}};
}

const Gate& gate(const GateFile& file, const std::string& group, const std::string& figure) {
  for (const Gate& g : file.gates)
    if (g.group == group && g.figure == figure) return g;
  FAIL("no gate " << group << " " << figure);
  return file.gates.front();
}

}  // namespace

TEST_CASE("a gate passes at its value and fails above it") {
  const auto passed = judge(some_gates(), figures(0.06, 0.1), false);
  REQUIRE(passed.size() == 2);  // "gone" is not in these tables
  CHECK(passed[0].passed);
  CHECK(passed[1].passed);
  const auto failed = judge(some_gates(), figures(0.0601, 0.1), false);
  CHECK_FALSE(failed[0].passed);
  CHECK(failed[0].today == 0.0601);
  CHECK(failed[1].passed);
  // Of our own measurements every group is there: one that is not has been lost.
  const auto all = judge(some_gates(), figures(0.06, 0.1), true);
  REQUIRE(all.size() == 3);
  CHECK_FALSE(all[2].passed);
  CHECK_FALSE(all[2].today.has_value());
  const std::string text = verdicts_text(all);
  CHECK(text.find("2 gates passed, 1 failed") != std::string::npos);
  CHECK(text.find("no rows") != std::string::npos);
}

TEST_CASE("gates are tightened and never loosened") {
  const GateFile better = tightened(some_gates(), figures(0.03, 0.3), "2026-11-21");
  CHECK(gate(better, "published", "speed_median").at_most == Approx(0.033));
  CHECK(gate(better, "published", "speed_median").was == Approx(0.03));
  CHECK(gate(better, "published", "speed_median").date == "2026-11-21");
  // Worse than before: the old gate stays, with its date.
  CHECK(gate(better, "published", "speed_p90").at_most == 0.2);
  CHECK(gate(better, "published", "speed_p90").date == "2026-11-01");
  CHECK(gate(better, "new", "speed_median").at_most == Approx(0.023));
  CHECK(gate(better, "gone", "speed_median").at_most == 0.1);

  RandomStream random(7, 0);
  GateFile gates = some_gates();
  for (int i = 0; i < 200; ++i) {
    const auto today = figures(random.uniform() * 0.2, random.uniform());
    const GateFile next = tightened(gates, today, "2026-11-22");
    for (const Gate& old : gates.gates)
      CHECK(gate(next, old.group, old.figure).at_most <= old.at_most);
    gates = next;
  }
}

TEST_CASE("a file of gates is read back as it was written") {
  const ScratchFolder scratch("gates");
  const auto file = scratch / "gates.json";
  CHECK(load_gates_or_none(file).gates.empty());
  CHECK_THROWS_AS(load_gates(file), Error);
  write_file(file, gates_json(some_gates()));
  const GateFile read = load_gates(file);
  CHECK(gates_json(read) == gates_json(some_gates()));
  CHECK(read.gates.size() == 3);
  CHECK(read.relative_margin == 0.1);
  write_file(file, R"({"relative_margin": 0, "absolute_margin": 0, "gates": [{"group": "x"}]})");
  CHECK_THROWS_AS(load_gates(file), Error);
}

TEST_CASE("figures of a group leave odd rows out of the 90th percentile only") {
  std::vector<PreparedRow> rows(12);
  std::vector<ScoredRow> scored(12);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].source = "S";
    rows[i].gpu = "G";
    rows[i].measured.tokens_per_second_per_gpu = 100;
    RowPrediction p;
    p.made = true;
    p.tokens_per_second_per_gpu = i == 11 ? 400 : 100 + static_cast<double>(i);
    p.low_tokens = 0.95 * p.tokens_per_second_per_gpu;
    p.high_tokens = 1.05 * p.tokens_per_second_per_gpu;
    scored[i] = score_row(rows[i], p);
  }
  const auto before = group_figures(scored);
  rows[11].outside = "known";
  const auto after = group_figures(scored);
  REQUIRE(before.size() == 5);  // all, published, published on G, S on G, and S's order
  CHECK(before[4].group == "order of layouts, S");
  CHECK(before[4].figures.count("loss_worst") == 1);
  CHECK(before[0].group == "all");
  CHECK(before[0].figures.at("speed_median") == after[0].figures.at("speed_median"));
  CHECK(after[0].figures.at("speed_p90") == Approx(0.09));
  CHECK(before[0].figures.at("speed_p90") > 0.09);
  // 105 to 110, and 400, have ranges that begin above 100.
  CHECK(after[0].figures.at("not_covered") == Approx(6.0 / 12).margin(0.1));
  CHECK(after[0].figures.at("range_width") == Approx(0.1));
  CHECK(after[0].figures.at("skipped") == 0);
  CHECK(after[0].figures.count("peak_median") == 0);
}

}  // namespace orrery
