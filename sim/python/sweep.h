// SPDX-License-Identifier: Apache-2.0
// Predicts many scenarios and puts them into one table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/python/table.h"

namespace orrery {

// A column of the questions that answers do not repeat.
struct AskedColumn {
  std::string name;
  ColumnKind kind = ColumnKind::text;
};

struct SweepHow {
  std::vector<AskedColumn> asked = {};  // come first in the table
  std::optional<std::uint64_t> seed = {};
  int threads = 0;                                  // 0: all cores
  bool watch = false;                               // Ctrl-C ends it, on the main thread alone
  std::function<void(std::int64_t)> progress = {};  // rows done; from the calling thread
  std::int64_t first = 1;                           // number of the first row, for messages
};

struct Swept {
  std::shared_ptr<const AnswerTable> table;
  bool stopped = false;  // by Ctrl-C: rows from there on say so
};

// A row for each question to simulate (JSON of its settings), in order. One that is no good is a
// row too: its columns error, error_path, error_found and error_expected say why.
Swept sweep(const std::vector<std::string>& questions, const SweepHow& how);

// Of a capacity question (JSON): what its lists and ranges make, {"points", "varied"} or {"error"}
// as JSON; and a row for each of the points from `from` to `to`, by the values that vary.
std::string plan_points(const std::string& question);
Swept sweep_plan(const std::string& question, std::int64_t from, std::int64_t to,
                 const SweepHow& how);

}  // namespace orrery
