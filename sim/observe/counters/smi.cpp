// SPDX-License-Identifier: Apache-2.0
// Reads what nvidia-smi prints: dmon as text and as CSV, and tables of --query-gpu.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/observe/counters/readers.h"
#include "sim/observe/input/words.h"

namespace orrery::observe {
namespace {

bool contains(std::initializer_list<std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::vector<std::string_view> split(std::string_view line, bool csv) {
  return csv ? cells_of(line, ',') : words_of(line);
}

// The columns of dmon: "# gpu   pwr ..." or "#Date Time gpu pwr", then a line of units.
struct DmonHead {
  std::vector<std::string> columns;
  bool csv = false;

  std::optional<std::size_t> place(std::string_view column) const {
    const auto found = std::find(columns.begin(), columns.end(), column);
    if (found == columns.end()) return std::nullopt;
    return static_cast<std::size_t>(found - columns.begin());
  }
};

std::optional<DmonHead> dmon_head(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = trimmed(line.substr(1));
  DmonHead head;
  head.csv = line.find(',') != std::string_view::npos;
  for (const std::string_view cell : split(line, head.csv)) head.columns.emplace_back(cell);
  if (!head.place("gpu")) return std::nullopt;
  return head;
}

// --query-gpu's head: names with units in brackets.
std::string_view without_unit(std::string_view name) {
  const std::size_t bracket = name.find(" [");
  return bracket == std::string_view::npos ? name : name.substr(0, bracket);
}

// A column that says where or when, or what the device is.
struct QueryHead {
  std::vector<std::string> columns;
  std::vector<const Field*> fields;
  std::optional<std::size_t> time, index, uuid, name, bus, host;
};

QueryHead query_head(std::string_view line, std::size_t number, Collector& to) {
  QueryHead head;
  for (const std::string_view cell : cells_of(line, ',')) {
    const std::string_view name = without_unit(cell);
    const std::size_t place = head.columns.size();
    head.columns.emplace_back(name);
    head.fields.push_back(query_field(name));
    if (name == "timestamp")
      head.time = place;
    else if (name == "index")
      head.index = place;
    else if (contains({"uuid", "gpu_uuid"}, name))
      head.uuid = place;
    else if (contains({"name", "gpu_name"}, name))
      head.name = place;
    else if (contains({"pci.bus_id", "gpu_bus_id"}, name))
      head.bus = place;
    else if (name == "hostname")
      head.host = place;
    else if (head.fields.back() == nullptr)
      to.unknown(name);
  }
  const bool any = std::any_of(head.fields.begin(), head.fields.end(),
                               [](const Field* field) { return field != nullptr; });
  if (!any)
    to.refuse(number, in_quotes(line),
              "a line with the names of nvidia-smi's fields (--format=csv without noheader)");
  return head;
}

}  // namespace

bool read_dmon(LineReader& lines, Collector& to) {
  std::optional<DmonHead> head;
  std::string_view line;
  bool has_clock = false, units_follow = false;
  std::map<std::string, double> samples;  // of each GPU, where lines have no time
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    if (trimmed(line).starts_with('#')) {
      if (const auto found = dmon_head(line)) {
        head = found;
        units_follow = true;
        has_clock = head->place("Date") && head->place("Time");
        for (const std::string& column : head->columns)
          if (dmon_field(column) == nullptr && !contains({"gpu", "Date", "Time"}, column))
            to.unknown(column);
      } else if (units_follow) {
        units_follow = false;
      }
      continue;
    }
    if (!head)
      to.refuse(lines.number(), in_quotes(trimmed(line)),
                "a line \"# gpu ...\" with the names of columns before it");
    const std::vector<std::string_view> cells = split(line, head->csv);
    if (cells.size() != head->columns.size())
      to.refuse(lines.number(), plural(static_cast<double>(cells.size()), "cell"),
                fmt::format("{}, as in the head", head->columns.size()));
    const std::string device(cells[*head->place("gpu")]);
    if (!whole_number_in(device)) to.refuse_cell(lines.number(), "gpu", device);
    double time = 0;
    if (has_clock) {
      const auto clock = clock_of(cells[*head->place("Date")], cells[*head->place("Time")]);
      if (!clock) to.refuse_cell(lines.number(), "Date", cells[*head->place("Date")]);
      time = *clock;
    } else {
      time = samples[device]++;
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Field* field = dmon_field(head->columns[i]);
      if (field == nullptr) continue;
      const Cell cell = cell_of(cells[i]);
      if (cell.kind == Cell::Kind::wrong)
        to.refuse_cell(lines.number(), head->columns[i], cells[i]);
      to.add(*field, "", device, "", time, cell);
    }
  }
  return has_clock;
}

bool read_query(LineReader& lines, Collector& to) {
  std::optional<QueryHead> head;
  std::string_view line;
  std::map<std::string, double> samples;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    if (!head) {
      head = query_head(line, lines.number(), to);
      continue;
    }
    const std::vector<std::string_view> cells = cells_of(line, ',');
    // A loop that was started again writes its head again.
    if (cells.size() == head->columns.size() && without_unit(cells[0]) == head->columns[0])
      continue;
    if (cells.size() != head->columns.size())
      to.refuse(lines.number(), plural(static_cast<double>(cells.size()), "cell"),
                fmt::format("{}, as in the head", head->columns.size()));
    const auto text = [&](const std::optional<std::size_t>& place) {
      return place ? std::string(cells[*place]) : std::string();
    };
    std::string device = text(head->index);
    for (const auto& other : {head->uuid, head->bus})
      if (device.empty()) device = text(other);
    if (device.empty()) device = "0";
    const std::string host = text(head->host);
    double time = 0;
    if (head->time) {
      const auto clock = clock_in(cells[*head->time]);
      if (!clock) to.refuse_cell(lines.number(), "timestamp", cells[*head->time]);
      time = *clock;
    } else {
      time = samples[host + "/" + device]++;
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Field* field = head->fields[i];
      if (field == nullptr) continue;
      const Cell cell = cell_of(cells[i]);
      if (cell.kind == Cell::Kind::wrong)
        to.refuse_cell(lines.number(), head->columns[i], cells[i]);
      to.add(*field, host, device, "", time, cell);
    }
    to.name_device(host, device, head->name ? std::optional(text(head->name)) : std::nullopt,
                   head->uuid ? std::optional(text(head->uuid)) : std::nullopt);
  }
  if (head && !head->index && !head->uuid && !head->bus)
    to.note("No column tells the GPU (index, uuid, pci.bus_id): all rows count as GPU 0's.");
  return head && head->time.has_value();
}

}  // namespace orrery::observe
