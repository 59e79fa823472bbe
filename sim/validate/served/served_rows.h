// SPDX-License-Identifier: Apache-2.0
// Holds the simulator of served models against measured runs, each by its own protocol.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/serving/serving_row.h"

namespace orrery {

// What a row's protocol gives: the row's own statistic of latencies, in seconds.
struct ServedRow {
  const ServingRow* row = nullptr;
  std::string skipped;  // why nothing is predicted, one sentence; empty: it is
  double ttft = 0, tpot = 0, tokens_s_gpu = 0;
};

// Serves the row's requests on its deployment. Never throws: what cannot be served says why.
ServedRow serve_row(const ServingRow& row);
std::vector<ServedRow> serve_rows(const std::vector<ServingRow>& rows, int threads, bool quiet);

// Errors by machine, engine and precision, over all, and why rows were skipped.
std::string served_text(const std::vector<ServedRow>& rows);
// Appends an entry for each measured quantity of each row, and groups of errors.
void add_served_json(const std::vector<ServedRow>& rows, Json& row_list, Json& group_list);

}  // namespace orrery
