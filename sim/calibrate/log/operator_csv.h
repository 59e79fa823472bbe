// SPDX-License-Identifier: Apache-2.0
// Knows CSV tables of measured operators: named columns, numbers with errors, hashes of shapes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/calibrate/log/measurement.h"

namespace orrery::table {

// Its lines of comment are left out.
struct Csv : CsvTable {
  // Error that names the file when the column is missing.
  const std::string& text(std::size_t row, const std::string& column) const;
  // Error that names file, row, column and cell.
  [[noreturn]] void fail(std::size_t row, const std::string& column,
                         const std::string& expected) const;
  // The same where the cell is no number.
  double number(std::size_t row, const std::string& column) const;
  std::int64_t integer(std::size_t row, const std::string& column) const;
  // The same for what must be there: at least 1.
  std::int64_t count(std::size_t row, const std::string& column) const;
  std::int64_t integer_or(std::size_t row, const std::string& column, std::int64_t other) const;
  std::string text_or(std::size_t row, const std::string& column, const std::string& other) const;
};

// A table without text has no rows. Errors: those of parse_csv().
Csv read_csv(const std::filesystem::path& path);
std::uint64_t hash(std::initializer_list<std::int64_t> values);

// One table for each kernel and library of a table of training kernels.
std::vector<OperatorTable> read_training_kernels(const Csv& csv, const OperatorTable& empty);

}  // namespace orrery::table
