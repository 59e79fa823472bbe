// SPDX-License-Identifier: Apache-2.0
// Knows CSV tables of measured operators: named columns, numbers with errors, hashes of shapes.
#include "sim/calibrate/log/operator_csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>

#include "sim/base/errors/check.h"

namespace orrery::table {
namespace {

constexpr double most_exact = 9007199254740992.0;  // 2^53: what a double holds exactly

}  // namespace

const std::string& Csv::text(std::size_t row, const std::string& column) const {
  if (!has(column))
    throw Error({.file = file,
                 .path = "",
                 .found = "no column " + in_quotes(column),
                 .expected = "a table with that column",
                 .nearest = nearest_name(column, header)});
  return CsvRow(*this, row).text(column);
}

void Csv::fail(std::size_t row, const std::string& column, const std::string& expected) const {
  throw Error({.file = file,
               .path = fmt::format("row {}, {}", row + 1, column),
               .found = in_quotes(text(row, column)),
               .expected = expected,
               .nearest = ""});
}

double Csv::number(std::size_t row, const std::string& column) const {
  const std::string& cell = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    fail(row, column, "a number");
  return value;
}

std::int64_t Csv::integer(std::size_t row, const std::string& column) const {
  const double value = number(row, column);
  if (std::abs(value) > most_exact) fail(row, column, "a whole number below 2^53");
  return static_cast<std::int64_t>(std::llround(value));
}

std::int64_t Csv::count(std::size_t row, const std::string& column) const {
  const std::int64_t value = integer(row, column);
  if (value < 1) fail(row, column, "at least 1");
  return value;
}

std::int64_t Csv::integer_or(std::size_t row, const std::string& column, std::int64_t other) const {
  return has(column) ? integer(row, column) : other;
}

std::string Csv::text_or(std::size_t row, const std::string& column,
                         const std::string& other) const {
  return has(column) ? text(row, column) : other;
}

Csv read_csv(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  std::ifstream stream(path);
  if (!stream || std::filesystem::is_directory(path))
    throw Error({.file = path.string(),
                 .path = "",
                 .found = "nothing readable",
                 .expected = "a CSV file",
                 .nearest = ""});
  std::string text;
  for (std::string line; std::getline(stream, line); text += '\n')
    if (!line.starts_with('#')) text += line;
  if (text.find_first_not_of("\r\n") == std::string::npos) return {{.file = file}};
  return {parse_csv(text, file)};
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
