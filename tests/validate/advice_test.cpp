// SPDX-License-Identifier: Apache-2.0
// Tests how the advisor's own layout is held against layouts that were measured.
#include <catch2/catch.hpp>

#include <algorithm>

#include "hw_models/catalog.h"
#include "sim/validate/advice.h"
#include "sim/validate/rows/rows.h"
#include "sim/validate/rows/step_table.h"
#include "sim/validate/score/predict.h"
#include "sim/validate/score/ranking.h"

using namespace orrery;

TEST_CASE("decisions are what rows tell, and no more") {
  Layout a;
  a.tp = 8;
  a.pp = 4;
  a.micro_batch = 1;
  Layout b = a;
  CHECK(same_decisions(a, b));
  b.bucket = Bytes(1e6);
  b.zero_stage = 1;
  CHECK(same_decisions(a, b));  // no row tells buckets; ZeRO 0 and 1 differ in memory
  b.zero_stage = 3;
  CHECK_FALSE(same_decisions(a, b));
  b = a;
  b.sequence_parallel = !a.sequence_parallel;
  CHECK_FALSE(same_decisions(a, b));
  b.tp = 1;
  Layout c = b;
  c.sequence_parallel = !b.sequence_parallel;
  CHECK(same_decisions(b, c));  // without tensor parallelism there are no sequences to split
  b = a;
  b.recompute = Recompute::full;
  CHECK_FALSE(same_decisions(a, b));
  b = a;
  b.pp = 1;
  c = b;
  c.schedule = Schedule::gpipe;
  CHECK(same_decisions(b, c));  // one stage has no schedule
}

// Three jobs, with every layout that the program of the measurement has, on two H200 of which the
// model knew no layout of these.
TEST_CASE("what is advised for the jobs whose every layout we ran is the best of them or a tie") {
  const Aliases aliases = load_aliases(data_root() / "validation/aliases.json");
  const ModelError error = load_model_error(data_root() / "validation/model_error.json");
  RowReader reader(aliases);
  const auto table = data_root() / "validation/measurements/steps/h200_layouts.csv";
  const std::vector<PreparedRow> rows =
      reader.read_training(training_runs_of(read_csv(table), aliases));
  std::vector<ScoredRow> scored;
  for (const PreparedRow& row : rows) scored.push_back(score_row(row, predict_row(row, error)));
  const std::vector<AdvisedJob> jobs = advise_published(scored, error, 0, true);
  REQUIRE(jobs.size() == 3);
  for (const AdvisedJob& job : jobs) {
    INFO(job.published->row->id);
    REQUIRE(job.advised);
    CHECK(job.measured >= 19);
    CHECK(job.gain >= 0);  // the grid holds what was run
    CHECK(job.low <= job.gain);
    CHECK(job.gain <= job.high);
    REQUIRE(job.run != nullptr);
    // What it lists first among those that were run lies within the noise of the best.
    CHECK(*job.run->row->measured.tokens_per_second_per_gpu >=
          (1 - rerun_spread) * *job.published->row->measured.tokens_per_second_per_gpu);
    if (job.place > 0) CHECK(job.gain <= rerun_spread);
  }
  const std::string text = advice_text(jobs);
  CHECK(text.find("2g-s4k-ddp-mbs2") != std::string::npos);
  CHECK(text.find("training steps") != std::string::npos);
}
