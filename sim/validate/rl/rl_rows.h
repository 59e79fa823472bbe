// SPDX-License-Identifier: Apache-2.0
// Reads tables of measured RL steps, makes a job of each row and predicts it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/outcome/rl/rl_step.h"
#include "sim/validate/rows/aliases.h"

namespace orrery {

// A row with the job that it stands for, in the columns of validation/measurements/rl/README.md.
struct RlRow {
  std::string id, source, version, gpu, model, precision;
  std::string recipe;   // rows of one are repeats by another release
  std::string skipped;  // why it is not scored; empty: it is, by what it measured
  std::optional<double> step_seconds, tokens_s_gpu;
  RlJob job;    // of a row that is scored
  RlStep step;  // predicted
  bool scored() const { return skipped.empty(); }
};

// Whether the table holds RL steps, told by its columns.
bool is_rl_table(const CsvTable& table);
// Error for a missing column, a cell that does not parse, a name that no catalogue knows.
std::vector<RlRow> read_rl_rows(const CsvTable& table, const Aliases& aliases);
// Predicts all that are scored; a job that cannot be is skipped with its reason.
void predict_rl_rows(std::vector<RlRow>& rows, int threads);

enum class RlQuantity : std::uint8_t { step, tokens_s_gpu };
inline constexpr RlQuantity rl_quantities[] = {RlQuantity::step, RlQuantity::tokens_s_gpu};
inline constexpr auto rl_quantity_text = enum_names<RlQuantity>({"step", "tokens_s_gpu"});

// nullopt where the row has no such figure or is not scored.
std::optional<double> measured(const RlRow& row, RlQuantity quantity);
double predicted(const RlRow& row, RlQuantity quantity);

}  // namespace orrery
