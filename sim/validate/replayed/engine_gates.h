// SPDX-License-Identifier: Apache-2.0
// Gives the figures of our own serving engine that gates hold.
#pragma once

#include <vector>

#include "sim/validate/replayed/engine_replay.h"
#include "sim/validate/score/groups.h"

namespace orrery {

// The shipped tables (validation/measurements/serving_engine/*.csv), in order of their names.
std::vector<EngineCase> shipped_engine_cases();

// Groups "our engine, fitted" and "our engine, held", and the same of "our engine on several GPUs":
// medians of |error| by quantity (`tpot_median`, `ttft_median`, `ttft_p99_median`,
// `transfer_median`, `device_step_median`, `kv_blocks_median`) and the share of verdicts on memory
// that are wrong (`oom_wrong`).
std::vector<GroupFigures> engine_gate_figures(const std::vector<EngineFigure>& figures);

}  // namespace orrery
