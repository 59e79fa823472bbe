// Holds predicted peaks against those of our own runs on H200, row by row.
#include <catch2/catch.hpp>

#include "hw_models/catalog.h"
#include "sim/app/step_table.h"
#include "sim/app/validate_predict.h"
#include "sim/app/validate_report.h"

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
      CHECK(std::abs(*scored.peak_error) < 0.05);
      sharded += row.layout.zero_stage == 3;
      pipelines += row.layout.pp > 1;
    }
  }
  CHECK(sharded > 15);
  CHECK(pipelines > 20);
}

}  // namespace orrery
