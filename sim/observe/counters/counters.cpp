// SPDX-License-Identifier: Apache-2.0
// Tells forms of counters apart by how they begin, and reads each.
#include "sim/observe/counters/counters.h"

#include <array>

#include "sim/base/errors/check.h"
#include "sim/observe/counters/readers.h"
#include "sim/observe/input/words.h"

namespace orrery::observe {
namespace {

bool is_metric_line(std::string_view line) {
  if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) return true;
  const auto metric = metric_name(line);
  if (!metric) return false;
  const auto words = words_of(metric->rest);
  const bool named = metric->name.starts_with("DCGM_") || metric->name.starts_with("node_");
  return named && (words.size() == 1 || words.size() == 2) &&
         cell_of(words[0]).kind != Cell::Kind::wrong;
}

std::optional<CounterSource> source_of_line(std::string_view line) {
  const std::string_view bare = line.starts_with('#') ? trimmed(line.substr(1)) : line;
  if (line.starts_with('#')) {
    const bool csv = bare.find(',') != std::string_view::npos;
    for (const std::string_view word : csv ? cells_of(bare, ',') : words_of(bare))
      if (word == "gpu") return CounterSource::smi_dmon;
    if (bare.starts_with("Entity")) return CounterSource::dcgmi_dmon;
  }
  if (is_metric_line(line)) return CounterSource::prometheus_text;
  if (line.find(',') == std::string_view::npos) return std::nullopt;
  if (line.find("DCGM_") != std::string_view::npos ||
      line.find("node_infiniband_") != std::string_view::npos)
    return CounterSource::prometheus_csv;
  const auto cells = cells_of(line, ',');
  bool time = false, metric = false, value = false;
  for (const std::string_view cell : cells) {
    const std::string_view name = cell.substr(0, cell.find(" ["));
    if (query_field(name) != nullptr) return CounterSource::smi_query;
    time = time || cell == "timestamp" || cell == "time" || cell == "Time" || cell == "ts";
    metric = metric || cell == "metric" || cell == "__name__" || cell == "metric_name";
    value = value || cell == "value" || cell == "Value";
  }
  if (time && metric && value) return CounterSource::prometheus_csv;
  return std::nullopt;
}

}  // namespace

std::optional<CounterSource> counter_source(std::string_view first_bytes) {
  // Heads stand at the top; a few lines of a shell may stand before them.
  constexpr int looked_at = 20;
  for (int i = 0; i < looked_at && !first_bytes.empty(); ++i) {
    const std::size_t end = std::min(first_bytes.find('\n'), first_bytes.size());
    const std::string_view line = trimmed(first_bytes.substr(0, end));
    first_bytes.remove_prefix(std::min(end + 1, first_bytes.size()));
    if (const auto source = source_of_line(line)) return source;
  }
  return std::nullopt;
}

CounterLog read_counters(const std::filesystem::path& file) {
  constexpr std::size_t head = std::size_t{1} << 16U;
  const auto source = counter_source(first_bytes(file, head));
  if (!source)
    throw Error({.file = file.string(),
                 .found = "no head that names columns of counters",
                 .expected = "nvidia-smi dmon, nvidia-smi --query-gpu --format=csv, dcgmi dmon, or "
                             "metrics of Prometheus as text or CSV"});
  LineReader lines(file);
  Collector collector(file.string(), *source);
  bool has_clock = false;
  switch (*source) {
    case CounterSource::smi_dmon:
      has_clock = read_dmon(lines, collector);
      break;
    case CounterSource::smi_query:
      has_clock = read_query(lines, collector);
      break;
    case CounterSource::dcgmi_dmon:
      has_clock = read_dcgmi(lines, collector);
      break;
    case CounterSource::prometheus_text:
      has_clock = read_metrics(lines, collector);
      break;
    case CounterSource::prometheus_csv:
      has_clock = read_metric_table(lines, collector);
      break;
  }
  return collector.finish(has_clock, lines.is_cut());
}

bool is_throttled_by(double reading, ThrottleReason reason) {
  constexpr double most = 9e15;
  if (!(reading >= 0 && reading < most)) return false;
  return (static_cast<std::uint64_t>(reading) & static_cast<std::uint64_t>(reason)) != 0;
}

std::vector<const CounterSeries*> CounterLog::of(Counter counter) const {
  std::vector<const CounterSeries*> found;
  for (const CounterSeries& one : series)
    if (one.counter == counter) found.push_back(&one);
  return found;
}

}  // namespace orrery::observe
