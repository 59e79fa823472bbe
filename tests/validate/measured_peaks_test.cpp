// SPDX-License-Identifier: Apache-2.0
// Holds predicted peaks against those of our own runs on H200, row by row.
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/validate/rows/step_table.h"
#include "sim/validate/score/predict.h"
#include "sim/validate/score/report.h"

namespace orrery {

TEST_CASE("peaks of FSDP2 and of pipelines are within 5% of every measured one") {
  const auto folder = data_root() / "validation";
  const Aliases aliases = load_aliases(folder / "aliases.json");
  const ModelError error = load_model_error(folder / "model_error.json");
  int sharded = 0, pipelines = 0;
  for (const char* file :
       {"h200_memory.csv", "h200_reserved.csv", "h200_layouts.csv", "h200_train.csv"}) {
    RowReader reader(aliases);
    auto rows = reader.read_training(
        training_runs_of(read_csv(folder / "measurements/steps" / file), aliases));
    for (PreparedRow& row : rows) {
      if (!row.measured.peak_gibibytes) continue;
      settle_recompute(row, error);
      const ScoredRow scored = score_row(row, predict_row(row, error));
      INFO(file << " " << row.id << ": " << *scored.peak_error);
      CHECK(std::abs(*scored.peak_error) < peak_error);
      sharded += row.layout.zero_stage == 3;
      pipelines += row.layout.pp > 1;
    }
  }
  CHECK(sharded > 15);
  CHECK(pipelines > 20);
}

TEST_CASE(
    "what the allocator must have lies in the stacks' ranges, and its middle near their value") {
  const CsvTable table = read_csv(data_root() / "validation/measurements/steps/h200_allocator.csv");
  std::map<std::string, std::vector<double>> needed;  // over the allocated peak, by stack
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, i);
    // It runs with what it took of itself, and under the least limit that was tried.
    const double least = std::min(*row.number("reserved"), row.number("ran_at").value_or(2));
    needed[row.text("wrap") == "fsdp" ? "pytorch-fsdp2" : "pytorch"].push_back(least);
  }
  REQUIRE(needed.size() == 2);
  for (auto& [name, of] : needed) {
    INFO(name);
    std::sort(of.begin(), of.end());
    const auto rounding =
        load_stack(name, {}, data_root() / "workloads/catalog/stacks").memory.allocator_rounding;
    CHECK(of.front() >= *rounding.low);
    CHECK(of.back() <= *rounding.high);
    CHECK(std::abs(rounding.get() - (of[1] + of[2]) / 2) < 0.035);
  }
}

}  // namespace orrery
