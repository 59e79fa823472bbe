// SPDX-License-Identifier: Apache-2.0
// Says how far predictions of RL steps are from measurements, and whether policies come in order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/rl/rl_blind.h"
#include "sim/validate/rl/rl_rows.h"
#include "sim/validate/score/groups.h"

namespace orrery {

// Rows of one model, machine and release of which one takes turns and the other runs steps off.
// `same_gpus`: they have as many, else a job off policy has its generation beside it.
struct RlPair {
  std::size_t sync = 0, off = 0;
  bool same_gpus = false;
  bool right = false;  // the one with more tokens/s/GPU is predicted to be that
  // Neither's range holds the other's prediction: else the predictions name no winner.
  bool decided = false;
};
// A range of each row.
std::vector<RlPair> rl_pairs(const std::vector<RlRow>& rows, const std::vector<RlRange>& ranges);

// Every row with its phases, errors by model and of all, the order of pairs. No value is fitted to
// these rows; they were looked at while the model was built (docs/accuracy.md).
std::string rl_text(const std::vector<RlRow>& rows, const RlError& error);
// How ranges do that are made of other models' errors, and the order of pairs by them.
std::string rl_held_out_text(const std::vector<RlRow>& rows);
// What the errors would be with each value of the programs that is no fact at its range's ends.
std::string rl_free_text(const std::vector<RlRow>& rows, int threads);
// Rows, with ranges, and groups of kind "rl" as of served runs.
void add_rl_json(const std::vector<RlRow>& rows, const RlError& error, Json& row_list,
                 Json& group_list);

// The shipped table, predicted.
std::vector<RlRow> shipped_rl_rows(const Aliases& aliases, int threads);
// Groups "RL steps" and "RL steps, MODEL": step_median, step_p90, tokens_s_gpu_median,
// tokens_s_gpu_p90; of all also order_wrong (pairs on as many GPUs), order_wrong_all and
// order_wrong_decided, and the shares that ranges of other models' errors do not hold,
// step_not_held and tokens_s_gpu_not_held.
std::vector<GroupFigures> rl_gate_figures(const std::vector<RlRow>& rows);

}  // namespace orrery
