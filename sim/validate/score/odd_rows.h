// SPDX-License-Identifier: Apache-2.0
// Knows which measured rows are known to be odd, and why: validation/odd_rows.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/validate/score/report.h"

namespace orrery {

// Rows of one source of which something is known that no column tells.
struct OddRows {
  std::string source;            // as the table names it, in full
  std::vector<std::string> ids;  // of that source's rows
  // They stand outside the ranking and the 90th percentile; else they are scored as any row.
  bool outside = false;
  std::string reason;
};

// Error for a file that does not have this shape.
std::vector<OddRows> load_odd_rows(const std::filesystem::path& file);

// Sets `outside` of rows that stand outside and `remark` of the others; a row that has its own
// reason keeps it.
void mark_odd_rows(std::vector<PreparedRow>& rows, const std::vector<OddRows>& odd);

// The reasons of the rows that are here, with their ids; empty where there are none.
std::string odd_rows_text(const std::vector<ScoredRow>& rows);

}  // namespace orrery
