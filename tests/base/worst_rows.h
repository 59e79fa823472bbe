// SPDX-License-Identifier: Apache-2.0
// Prints the three rows of a bar that are farthest from what was published or measured.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace orrery {

class WorstRows {
 public:
  // `off`: how far `here` is from `there`, in the unit of the bar.
  void add(std::string row, double here, double there, double off, const char* unit) {
    rows_.push_back({std::move(row), here, there, off, unit});
  }
  void print(const char* bar) {
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Row& a, const Row& b) { return a.off > b.off; });
    fmt::print("{}: {} rows, the worst three\n", bar, rows_.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(3, rows_.size()); ++i)
      fmt::print("  {}: {:.5g} here, {:.5g} there, {:.2g}{} off\n", rows_[i].row, rows_[i].here,
                 rows_[i].there, rows_[i].off, rows_[i].unit);
  }

 private:
  struct Row {
    std::string row;
    double here = 0, there = 0, off = 0;
    const char* unit = "";
  };
  std::vector<Row> rows_;
};

}  // namespace orrery
