// SPDX-License-Identifier: Apache-2.0
// Knows CSV tables of measured operators: named columns, numbers with errors, hashes of shapes.
#include "sim/calibrate/log/operator_csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "sim/base/errors/check.h"

namespace orrery::table {
namespace {

constexpr double most_exact = 9007199254740992.0;  // 2^53: what a double holds exactly

}  // namespace

const std::string& Csv::text(std::size_t row, const std::string& column) const {
  const auto found = columns.find(column);
  if (found == columns.end())
    throw Error({.file = file,
                 .path = "",
                 .found = "no column \"" + column + "\"",
                 .expected = "a table with that column",
                 .nearest = ""});
  return rows[row][found->second];
}

double Csv::number(std::size_t row, const std::string& column) const {
  const std::string& cell = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    throw Error({.file = file,
                 .path = fmt::format("row {}, {}", row + 1, column),
                 .found = "\"" + cell + "\"",
                 .expected = "a number",
                 .nearest = ""});
  return value;
}

std::int64_t Csv::integer(std::size_t row, const std::string& column) const {
  const double value = number(row, column);
  if (std::abs(value) > most_exact)
    throw Error({.file = file,
                 .path = fmt::format("row {}, {}", row + 1, column),
                 .found = fmt::format("{}", value),
                 .expected = "a whole number below 2^53",
                 .nearest = ""});
  return static_cast<std::int64_t>(std::llround(value));
}

std::int64_t Csv::count(std::size_t row, const std::string& column) const {
  const std::int64_t value = integer(row, column);
  if (value < 1)
    throw Error({.file = file,
                 .path = fmt::format("row {}, {}", row + 1, column),
                 .found = fmt::format("{}", value),
                 .expected = "at least 1",
                 .nearest = ""});
  return value;
}

std::int64_t Csv::integer_or(std::size_t row, const std::string& column, std::int64_t other) const {
  return columns.contains(column) ? integer(row, column) : other;
}

std::string Csv::text_or(std::size_t row, const std::string& column,
                         const std::string& other) const {
  const auto found = columns.find(column);
  return found == columns.end() ? other : rows[row][found->second];
}

namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(line);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

}  // namespace

Csv read_csv(const std::filesystem::path& path) {
  std::ifstream stream(path);
  Csv csv{.file = path.filename().string(), .columns = {}, .rows = {}};
  if (!stream || std::filesystem::is_directory(path))
    throw Error({.file = path.string(),
                 .path = "",
                 .found = "nothing readable",
                 .expected = "a CSV file",
                 .nearest = ""});
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    auto cells = split(line, ',');
    if (csv.columns.empty()) {
      for (std::size_t c = 0; c < cells.size(); ++c)
        if (!csv.columns.emplace(cells[c], c).second)
          throw Error({.file = csv.file,
                       .path = "the first line",
                       .found = fmt::format("two columns \"{}\"", cells[c]),
                       .expected = "each column once",
                       .nearest = ""});
      continue;
    }
    if (cells.size() != csv.columns.size())
      throw Error({.file = csv.file,
                   .path = fmt::format("row {}", csv.rows.size() + 1),
                   .found = fmt::format("{} cells", cells.size()),
                   .expected = fmt::format("{}", csv.columns.size()),
                   .nearest = ""});
    csv.rows.push_back(std::move(cells));
  }
  return csv;
}

std::uint64_t hash(std::initializer_list<std::int64_t> values) {
  std::uint64_t h = 1469598103934665603ull;  // FNV-1a, then a finaliser so that low bits mix
  for (const std::int64_t v : values) {
    for (int byte = 0; byte < 8; ++byte) {
      h ^= (static_cast<std::uint64_t>(v) >> (8 * byte)) & 0xff;
      h *= 1099511628211ull;
    }
  }
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

}  // namespace orrery::table
