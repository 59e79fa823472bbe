// SPDX-License-Identifier: Apache-2.0
// Knows CSV tables of measured operators: named columns, numbers with errors, hashes of shapes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "sim/calibrate/log/measurement.h"

namespace orrery::table {

struct Csv {
  std::string file;
  std::map<std::string, std::size_t> columns;
  std::vector<std::vector<std::string>> rows;

  // Error that names the file when the column is missing.
  const std::string& text(std::size_t row, const std::string& column) const;
  // Error that names file, row and column when the cell is no number.
  double number(std::size_t row, const std::string& column) const;
  std::int64_t integer(std::size_t row, const std::string& column) const;
  // The same for what must be there: at least 1.
  std::int64_t count(std::size_t row, const std::string& column) const;
  std::int64_t integer_or(std::size_t row, const std::string& column, std::int64_t other) const;
  std::string text_or(std::size_t row, const std::string& column, const std::string& other) const;
};

Csv read_csv(const std::filesystem::path& path);
std::uint64_t hash(std::initializer_list<std::int64_t> values);

// One table for each kernel and library of a table of training kernels.
std::vector<OperatorTable> read_training_kernels(const Csv& csv, const OperatorTable& empty);

}  // namespace orrery::table
