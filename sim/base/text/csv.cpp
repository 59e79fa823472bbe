// SPDX-License-Identifier: Apache-2.0
// Reads comma-separated values by RFC 4180, one character at a time.
#include "sim/base/text/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"

namespace orrery {
namespace {

const std::string nothing;

std::size_t column_index(const CsvTable& table, std::string_view column) {
  const auto found = std::find(table.header.begin(), table.header.end(), column);
  return static_cast<std::size_t>(found - table.header.begin());
}

// Splits text into records; a record is one header or row with the line on which it starts.
class Splitter {
 public:
  Splitter(std::string_view text, const std::string& file, std::size_t first_line)
      : text_(text), file_(file), line_(first_line) {}

  // False at the end of the text.
  bool next(std::vector<std::string>& fields) {
    skip_empty_lines();
    if (at_ >= text_.size()) return false;
    fields.clear();
    start_line_ = line_;
    for (;;) {
      fields.push_back(field());
      if (at_ >= text_.size()) return true;
      const char c = text_[at_++];
      if (c == ',') continue;
      if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') ++at_;
      ++line_;
      return true;
    }
  }
  std::size_t start_line() const { return start_line_; }

 private:
  void skip_empty_lines() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
      if (text_[at_] == '\n') ++line_;
      ++at_;
    }
  }

  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    std::string value;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
      if (text_[at_] == '"') fail("a quote inside a field", "quotes around the whole field");
      value += text_[at_++];
    }
    return value;
  }

  std::string quoted() {
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != '"') {
        value += c;
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        value += c;
        ++at_;
      } else {
        ++at_;
        if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r')
          fail("text after a closing quote", "a comma or the end of the line");
        return value;
      }
    }
    fail("the end of the file", "a closing quote");
  }

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw Error({.file = file_,
                 .path = fmt::format("line {}", start_line_),
                 .found = found,
                 .expected = expected});
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0, line_, start_line_ = 1;
};

// The lines "# column: value" before the header: columns that have one value in every row.
struct Constants {
  std::vector<std::string> names, values;
  std::size_t lines = 0;
};

Constants take_constants(std::string_view& text, const std::string& file) {
  Constants constants;
  while (text.starts_with('#')) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(1, end - 1);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++constants.lines;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t name = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t colon = line.find(':', name);
    if (colon == std::string_view::npos || colon == name)
      throw Error({.file = file,
                   .path = fmt::format("line {}", constants.lines),
                   .found = in_quotes(std::string(line.substr(name, 60))),
                   .expected = "# column: value"});
    constants.names.emplace_back(line.substr(name, colon - name));
    const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    constants.values.emplace_back(line.substr(value));
  }
  return constants;
}

void check_header(const CsvTable& table) {
  for (std::size_t i = 0; i < table.header.size(); ++i)
    if (std::find(table.header.begin(), table.header.begin() + static_cast<std::ptrdiff_t>(i),
                  table.header[i]) != table.header.begin() + static_cast<std::ptrdiff_t>(i))
      throw Error({.file = table.file,
                   .path = "line 1",
                   .found = "column " + in_quotes(table.header[i]) + " twice",
                   .expected = "every column once"});
}

}  // namespace

bool CsvTable::has(std::string_view column) const {
  return std::find(header.begin(), header.end(), column) != header.end();
}

CsvTable parse_csv(std::string_view text, const std::string& file) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (text.find('\0') != std::string_view::npos)
    throw Error({.file = file, .found = "a zero byte", .expected = "a text file"});
  CsvTable table{.file = file, .header = {}, .rows = {}, .lines = {}};
  const Constants constants = take_constants(text, file);
  Splitter splitter(text, file, constants.lines + 1);
  if (!splitter.next(table.header))
    throw Error({.file = file, .found = "an empty file", .expected = "a header line and rows"});
  const std::size_t written = table.header.size();
  table.header.insert(table.header.end(), constants.names.begin(), constants.names.end());
  check_header(table);
  std::vector<std::string> fields;
  while (splitter.next(fields)) {
    if (fields.size() != written)
      throw Error({.file = file,
                   .path = fmt::format("line {}", splitter.start_line()),
                   .found = fmt::format("{} fields", fields.size()),
                   .expected = fmt::format("{}, as in the header", written)});
    fields.insert(fields.end(), constants.values.begin(), constants.values.end());
    table.rows.push_back(fields);
    table.lines.push_back(splitter.start_line());
  }
  return table;
}

std::vector<std::filesystem::path> csv_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

CsvTable read_csv(const std::filesystem::path& file) {
  check_file_allowed(file);
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw Error({.file = file.string(), .found = "a folder", .expected = "a CSV file"});
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw Error({.file = file.string(), .found = "no readable file", .expected = "a CSV file"});
  // In pieces: a device may have no end.
  constexpr std::size_t limit = std::size_t{64} << 20U;
  std::string text;
  std::vector<char> piece(std::size_t{1} << 16U);
  while (stream && text.size() <= limit) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (text.size() > limit)
    throw Error({.file = file.string(), .found = "more than 64 MiB", .expected = "a CSV file"});
  if (stream.bad())
    throw Error({.file = file.string(), .found = "no readable file", .expected = "a CSV file"});
  return parse_csv(text, file.string());
}

const std::string& CsvRow::text(std::string_view column) const {
  const std::size_t i = column_index(*table_, column);
  return i < table_->header.size() ? table_->rows[index_][i] : nothing;
}

void CsvRow::fail(std::string_view column, const std::string& expected) const {
  throw Error({.file = table_->file,
               .path = fmt::format("line {}, column {}", table_->lines[index_], column),
               .found = in_quotes(text(column)),
               .expected = expected});
}

std::optional<double> CsvRow::number(std::string_view column) const {
  const std::string& value = text(column);
  if (value.empty()) return std::nullopt;
  char* end = nullptr;
  const double parsed = std::strtod(value.c_str(), &end);
  // strtod also takes hexadecimal, "inf" and leading blanks, which no table means.
  const bool plain = value.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (!plain || end != value.c_str() + value.size() || !std::isfinite(parsed))
    fail(column, "a number");
  return parsed;
}

std::optional<std::int64_t> CsvRow::integer(std::string_view column) const {
  const auto value = number(column);
  if (!value) return std::nullopt;
  constexpr double largest = 9.0e15;
  if (*value != std::floor(*value) || std::abs(*value) > largest) fail(column, "a whole number");
  return static_cast<std::int64_t>(*value);
}

std::optional<bool> CsvRow::flag(std::string_view column) const {
  const std::string& value = text(column);
  if (value.empty()) return std::nullopt;
  if (value != "0" && value != "1") fail(column, "0 or 1");
  return value == "1";
}

void require_columns(const CsvTable& table, const std::vector<std::string>& columns,
                     const std::string& listed_in) {
  for (const std::string& column : columns)
    if (!table.has(column))
      throw Error({.file = table.file,
                   .path = "line 1",
                   .found = "no column " + in_quotes(column),
                   .expected = "the columns that " + listed_in + " lists",
                   .nearest = nearest_name(column, table.header)});
}

}  // namespace orrery
