// SPDX-License-Identifier: Apache-2.0
// Knows what each tool calls a quantity, and in which unit it tells it.
#pragma once

#include <optional>
#include <string_view>

#include "sim/observe/counters/counters.h"

namespace orrery::observe {

struct Field {
  std::string_view name;  // as the tool spells it
  Counter counter = Counter::sm_clock;
  double scale = 1;                // to the unit of the counter
  std::string_view instance = {};  // which of several
};

// The field of a name: of nvidia-smi dmon's columns, of --query-gpu, of dcgmi dmon's columns, of
// metrics. Nothing where no quantity of ours is meant.
const Field* dmon_field(std::string_view name);
const Field* query_field(std::string_view name);
const Field* dcgmi_field(std::string_view name);
const Field* metric_field(std::string_view name);

}  // namespace orrery::observe
