// SPDX-License-Identifier: Apache-2.0
// Knows which function reads counters of which form.
#pragma once

#include "sim/observe/counters/collector.h"
#include "sim/observe/input/lines.h"

namespace orrery::observe {

// Each reads the whole file into the collector; true where times are clocks and not samples.
bool read_dmon(LineReader& lines, Collector& to);
bool read_query(LineReader& lines, Collector& to);
bool read_dcgmi(LineReader& lines, Collector& to);
bool read_metrics(LineReader& lines, Collector& to);
bool read_metric_table(LineReader& lines, Collector& to);

// "NAME{label="value",...}" taken apart; nothing where it is none.
struct MetricName {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels;
  std::string_view rest;  // behind the braces, or behind the name
  // The label's value, or empty.
  std::string label(std::string_view key) const;
};
std::optional<MetricName> metric_name(std::string_view text);

}  // namespace orrery::observe
