// SPDX-License-Identifier: Apache-2.0
// Holds the simulator against our own serving engine: the same requests, pool and scheduler.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/replayed/engine_cases.h"

namespace orrery {

// One measured quantity beside its prediction: "tpot", "ttft", "ttft_p99", "transfer",
// "device_step" in s, "kv_blocks", "oom" (0 or 1).
struct EngineFigure {
  const EngineCase* from = nullptr;
  const char* quantity = "";
  const char* unit = "";
  double measured = 0, predicted = 0;
  std::string skipped = {};  // why nothing is predicted, one sentence; empty: it is
};

// Replays every case, runs by their own arrivals and pools. Figures stand in the order of cases and
// point to them; what cannot be predicted says why.
std::vector<EngineFigure> replay_engine(const std::vector<EngineCase>& cases, int threads);

// Errors of one group: cases of one machine, model and half, or of all.
struct EngineErrors {
  std::string name, quantity;
  int rows = 0;
  double median = 0, p90 = 0, bias = 0;  // of |error|; with sign. Memory: the share that is wrong
};
std::vector<EngineErrors> engine_errors(const std::vector<EngineFigure>& figures);

std::string engine_text(const std::vector<EngineFigure>& figures, bool each_row);
// Appends an entry for each figure, and groups of errors.
void add_engine_json(const std::vector<EngineFigure>& figures, Json& row_list, Json& group_list);

}  // namespace orrery
