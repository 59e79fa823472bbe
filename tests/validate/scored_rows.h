// SPDX-License-Identifier: Apache-2.0
// Knows measured rows of one job on 8 GPUs, with what was predicted of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/validate/score/report.h"

namespace orrery::test {

struct MadeRow {
  double predicted = 0, measured = 0;  // tokens/s/GPU
  std::int64_t tp = 1;
};

// What is scored points into what was prepared.
struct ScoredRows {
  std::vector<PreparedRow> prepared;
  std::vector<ScoredRow> scored;
};

inline ScoredRows scored_rows(const std::vector<MadeRow>& made) {
  ScoredRows rows;
  for (std::size_t i = 0; i < made.size(); ++i) {
    PreparedRow row;
    row.id = "R" + std::to_string(i);
    row.source = "somebody's sweep";
    row.gpu = "H100";
    row.model.name = "a model";
    row.layout.tp = made[i].tp;
    row.layout.dp = 8 / made[i].tp;
    row.job.global_batch = 64;
    row.job.sequence = 4096;
    row.measured.tokens_per_second_per_gpu = made[i].measured;
    rows.prepared.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    RowPrediction prediction;
    prediction.made = true;
    prediction.tokens_per_second_per_gpu = made[i].predicted;
    rows.scored.push_back(score_row(rows.prepared[i], prediction));
  }
  return rows;
}

}  // namespace orrery::test
