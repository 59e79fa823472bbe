// SPDX-License-Identifier: Apache-2.0
// Knows which runs used speculative decoding where their tables do not tell.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/csv.h"
#include "sim/validate/serving/serving_case.h"

namespace orrery {

// A run, or where sizes are blank a whole campaign of aggregated runs, and its method.
struct SpeculationLabel {
  std::string gpu, engine, precision, date;
  std::optional<double> isl, osl, concurrency;
  std::optional<std::int64_t> tp, ep, dp;
  ServingSpeculation method = ServingSpeculation::none;
  std::string citation;
  bool of_campaign() const { return !isl && !osl && !concurrency; }
};

// Whether the table has the columns of labels; it holds no rows to predict then.
bool is_speculation_labels(const CsvTable& table);
std::vector<SpeculationLabel> read_speculation_labels(const CsvTable& table);

// R7: labels by a twin or this run's own label, by the model's name, by campaign; else out.
void label_speculation(ServingCases& cases, const std::vector<SpeculationLabel>& labels);

}  // namespace orrery
