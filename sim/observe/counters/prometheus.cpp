// SPDX-License-Identifier: Apache-2.0
// Reads metrics as exporters show them, and tables of queries over a range of time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/text/words.h"
#include "sim/observe/counters/readers.h"
#include "sim/observe/input/words.h"

namespace orrery::observe {
namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

// Whose reading a metric is.
struct Owner {
  std::string host, device, instance;
  std::optional<std::string> name, uuid;
};

Owner owner_of(const MetricName& metric) {
  Owner owner;
  const auto first = [&metric](std::initializer_list<std::string_view> keys) -> std::string {
    for (const std::string_view key : keys)
      if (std::string value = metric.label(key); !value.empty()) return value;
    return {};
  };
  owner.host = first({"Hostname", "hostname", "instance", "node", "host"});
  owner.device = first({"gpu", "GPU", "minor_number"});
  if (owner.device.empty()) {
    owner.device = first({"device", "UUID", "uuid"});
    if (const std::string port = metric.label("port"); !port.empty()) owner.device += "/" + port;
  }
  owner.instance = first({"nvlink", "link", "GPU_I_ID"});
  if (const std::string name = first({"modelName"}); !name.empty()) owner.name = name;
  if (const std::string uuid = first({"UUID", "uuid"}); !uuid.empty()) owner.uuid = uuid;
  return owner;
}

// Seconds since 1970 of a cell: seconds, milliseconds, or a date.
std::optional<double> time_of(std::string_view text) {
  if (const auto clock = clock_in(text)) return clock;
  const auto number = number_in(text);
  if (!number || *number < 0) return std::nullopt;
  constexpr double first_millisecond = 1e11;  // as seconds: the year 5138
  return *number >= first_millisecond ? *number * 1e-3 : *number;
}

// Cells of a line of CSV, with "" in quotes taken as a quote.
std::vector<std::string> unquoted_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) cell = std::string(trimmed(cell));
  return cells;
}

std::string lowered(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// A table's columns: when, of what, how much; or a metric each.
struct TableHead {
  std::vector<std::string> names;
  std::optional<std::size_t> time, metric, value;
  std::vector<std::optional<MetricName>> metrics;  // columns that are metrics themselves
};

TableHead table_head(std::string_view line, std::size_t number, Collector& to) {
  TableHead head;
  head.names = unquoted_cells(line);
  for (std::size_t i = 0; i < head.names.size(); ++i) {
    const std::string name = lowered(head.names[i]);
    head.metrics.emplace_back();
    if (!head.time && (name == "timestamp" || name == "time" || name == "ts" || name == "date")) {
      head.time = i;
    } else if (name == "metric" || name == "__name__" || name == "metric_name" || name == "name") {
      head.metric = i;
    } else if (name == "value") {
      head.value = i;
    } else if (auto metric = metric_name(head.names[i]); metric && metric_field(metric->name)) {
      head.metrics.back() = std::move(metric);
    } else if (metric && (metric->name.starts_with("DCGM_") || !metric->labels.empty())) {
      to.unknown(metric->name);
    }
  }
  const bool wide = std::any_of(head.metrics.begin(), head.metrics.end(),
                                [](const auto& metric) { return metric.has_value(); });
  if (!head.time || !(wide || (head.metric && head.value)))
    to.refuse(number, in_quotes(line),
              "columns of a time and of metrics, or of a time, a metric and a value");
  return head;
}

// Cells of other columns are labels of the row.
MetricName with_row_labels(MetricName metric, const TableHead& head,
                           const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (i != head.time && i != head.metric && i != head.value && !head.metrics[i])
      metric.labels.try_emplace(head.names[i], cells[i]);
  return metric;
}

void add(Collector& to, std::size_t line, const MetricName& metric, double time,
         std::string_view text) {
  const Field* field = metric_field(metric.name);
  if (field == nullptr) {
    to.unknown(metric.name);
    return;
  }
  const Cell cell = cell_of(text);
  if (cell.kind == Cell::Kind::wrong) to.refuse_cell(line, metric.name, text);
  const Owner owner = owner_of(metric);
  to.add(*field, owner.host, owner.device, owner.instance, time, cell);
  if (owner.name || owner.uuid) to.name_device(owner.host, owner.device, owner.name, owner.uuid);
}

}  // namespace

std::string MetricName::label(std::string_view key) const {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string() : found->second;
}

std::optional<MetricName> metric_name(std::string_view text) {
  MetricName metric;
  std::size_t i = 0;
  while (i < text.size() && is_name(text[i])) ++i;
  metric.name = std::string(text.substr(0, i));
  if (i < text.size() && text[i] == '{') {
    for (++i;;) {
      while (i < text.size() && (text[i] == ' ' || text[i] == ',')) ++i;
      if (i >= text.size()) return std::nullopt;
      if (text[i] == '}') break;
      const std::size_t start = i;
      while (i < text.size() && is_name(text[i])) ++i;
      const std::string key(text.substr(start, i - start));
      if (key.empty() || text.substr(i, 2) != "=\"") return std::nullopt;
      std::string value;
      for (i += 2; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        value += text[i];
      }
      if (i++ >= text.size()) return std::nullopt;
      metric.labels.try_emplace(key, value);
    }
    ++i;
  }
  if (const auto name = metric.labels.find("__name__");
      metric.name.empty() && name != metric.labels.end())
    metric.name = name->second;
  if (metric.name.empty()) return std::nullopt;
  metric.rest = text.substr(i);
  return metric;
}

bool read_metrics(LineReader& lines, Collector& to) {
  std::string_view line;
  std::map<std::string, double>
      scrapes;  // of each metric with its labels, where lines have no time
  bool has_clock = true, any = false;
  while (lines.next(line)) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with('#')) continue;
    const auto metric = metric_name(text);
    const std::vector<std::string_view> words =
        metric ? words_of(metric->rest) : std::vector<std::string_view>();
    if (words.empty() || words.size() > 2)
      to.refuse(lines.number(), in_quotes(text),
                "a metric, its labels, its value and perhaps a time");
    const std::string key(text.substr(0, text.size() - metric->rest.size()));
    double time = 0;
    if (words.size() == 2) {
      const auto told = time_of(words[1]);
      if (!told) to.refuse_cell(lines.number(), "time", words[1]);
      time = *told;
    } else if (metric_field(metric->name) != nullptr) {
      time = scrapes[key]++;
      has_clock = false;
    }
    any = true;
    add(to, lines.number(), *metric, time, words[0]);
  }
  return has_clock && any;
}

bool read_metric_table(LineReader& lines, Collector& to) {
  std::optional<TableHead> head;
  std::string_view line;
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    if (!head) {
      head = table_head(line, lines.number(), to);
      continue;
    }
    const std::vector<std::string> cells = unquoted_cells(line);
    if (cells.size() != head->names.size())
      to.refuse(lines.number(), plural(static_cast<double>(cells.size()), "cell"),
                fmt::format("{}, as in the head", head->names.size()));
    const auto time = time_of(cells[*head->time]);
    if (!time) to.refuse_cell(lines.number(), head->names[*head->time], cells[*head->time]);
    if (head->metric && head->value) {
      const auto metric = metric_name(cells[*head->metric]);
      if (!metric) to.refuse_cell(lines.number(), head->names[*head->metric], cells[*head->metric]);
      add(to, lines.number(), with_row_labels(*metric, *head, cells), *time, cells[*head->value]);
    }
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (head->metrics[i])
        add(to, lines.number(), with_row_labels(*head->metrics[i], *head, cells), *time, cells[i]);
  }
  return true;
}

}  // namespace orrery::observe
