// SPDX-License-Identifier: Apache-2.0
// Takes lines apart at '|', and counts GPUs in lists of trackable resources.
#include "workloads/job_traces/slurm_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/text/lines.h"
#include "workloads/cluster_job/job_cells.h"

namespace orrery {
namespace {

std::vector<std::string_view> bar_fields(std::string_view line) {
  std::vector<std::string_view> fields = fields_of(line, '|');
  for (std::string_view& field : fields) field = trimmed(field);
  return fields;
}

std::int64_t count_in(std::string_view digits, const CsvRow& row, const std::string& column,
                      const char* example) {
  std::int64_t count = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || stop != digits.data() + digits.size() || count < 0 ||
      count > most_job_gpus)
    row.fail(column, fmt::format("whole GPUs up to 10^7, such as {}", example));
  return count;
}

}  // namespace

CsvTable slurm_table(std::string_view text, const std::string& file,
                     const std::vector<std::string>& columns, const std::string& header) {
  CsvTable table{.file = file, .header = {}, .rows = {}, .lines = {}};
  std::vector<std::size_t> places;  // in a line, of each column of the table
  std::size_t number = 0, all_fields = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text, number);
    if (is_blank(line)) continue;
    const std::vector<std::string_view> fields = bar_fields(line);
    if (all_fields == 0) {
      all_fields = fields.size();
      for (const std::string& column : columns) {
        const auto at = std::find(fields.begin(), fields.end(), column);
        if (at == fields.end()) continue;
        table.header.push_back(column);
        places.push_back(static_cast<std::size_t>(at - fields.begin()));
      }
      continue;
    }
    if (fields.size() != all_fields)
      fail_fields(table, number, fields.size(), fmt::format("{}, {}", all_fields, header));
    std::vector<std::string>& row = table.rows.emplace_back();
    row.reserve(places.size());
    for (const std::size_t place : places) row.emplace_back(fields[place]);
    table.lines.push_back(number);
  }
  return table;
}

std::int64_t tres_gpus(const CsvRow& row, const std::string& column) {
  constexpr std::string_view key = "gres/gpu";
  std::optional<std::int64_t> total;
  std::int64_t of_kinds = 0;
  std::string_view text = row.text(column);
  while (!text.empty()) {
    const std::string_view part = next_part(text, ",");
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const bool kind = name.starts_with(key) && name.substr(key.size()).starts_with(':');
    if (name != key && !kind) continue;
    const std::int64_t count =
        count_in(part.substr(std::min(equals + 1, part.size())), row, column, "gres/gpu=8");
    if (kind)
      of_kinds += count;
    else
      total = count;
  }
  return total.value_or(of_kinds);
}

std::int64_t asked_gpus(const CsvRow& row, const std::string& column) {
  std::int64_t sum = 0;
  std::string_view text = row.text(column);
  while (!text.empty()) {
    std::string_view part = next_part(text, ",");
    if (!part.starts_with("gres:gpu") && !part.starts_with("gres/gpu")) continue;
    part.remove_prefix(std::string_view("gres/gpu").size());
    if (!part.empty() && part[0] != ':' && part[0] != '=') continue;  // such as gres/gpumem
    const std::size_t last = part.find_last_of(":=");
    const std::string_view end = part.substr(last == std::string_view::npos ? 0 : last + 1);
    const bool number = !end.empty() && end[0] >= '0' && end[0] <= '9';
    sum += number ? count_in(end, row, column, "gres:gpu:8") : 1;
  }
  return sum;
}

bool is_slurm_limit(const std::string& text) {
  return !text.empty() && text != "UNLIMITED" && text != "Partition_Limit" && text != "NOT_SET" &&
         text != "INVALID";
}

}  // namespace orrery
