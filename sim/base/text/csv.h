// SPDX-License-Identifier: Apache-2.0
// Knows how to read a table of comma-separated values strictly: every error names line and column.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A table as RFC 4180 has it: a header line, quoted fields that may hold commas, quotes ("") and
// line breaks, and the same number of fields on every line. Empty lines are skipped. Lines
// "# column: value" before the header are columns with one value in every row.
struct CsvTable {
  std::string file;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  // line of the file on which each row starts, from 1

  bool has(std::string_view column) const;
};

// Errors: a folder or a file that cannot be read, an empty one, text that is not UTF-8 free of
// zero bytes, an open quote, a line with too many or too few fields, a column that appears twice.
CsvTable read_csv(const std::filesystem::path& file);
// The tables (.csv) that lie in a folder, by name; none where there is no such folder.
std::vector<std::filesystem::path> csv_files(const std::filesystem::path& folder);
CsvTable parse_csv(std::string_view text, const std::string& file);

// One row of a table, addressed by column name. A column that the table lacks reads as blank.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, std::size_t index) : table_(&table), index_(index) {}
  const std::string& text(std::string_view column) const;
  bool blank(std::string_view column) const { return text(column).empty(); }
  // Blank: nullopt. Anything else that is not a finite number (an integer): Error.
  std::optional<double> number(std::string_view column) const;
  std::optional<std::int64_t> integer(std::string_view column) const;
  std::optional<bool> flag(std::string_view column) const;  // "0" or "1"
  [[noreturn]] void fail(std::string_view column, const std::string& expected) const;

 private:
  const CsvTable* table_;
  std::size_t index_;
};

// Error that names the first of `columns` that the table lacks; `listed_in` says where they are
// told.
void require_columns(const CsvTable& table, const std::vector<std::string>& columns,
                     const std::string& listed_in);

}  // namespace orrery
