// SPDX-License-Identifier: Apache-2.0
// Predicts each kind of run by fits to another kind.
#include "sim/validate/nested/transfer.h"

#include <set>

#include "workloads/model/model.h"

namespace orrery {
namespace {

constexpr double small_model = 16e9, large_model = 150e9;  // parameters

bool is_blackwell(const PreparedRow& row) {
  const Architecture a = row.cluster->cluster.device.architecture;
  return a == Architecture::blackwell || a == Architecture::blackwell_ultra;
}
bool is_wide(const PreparedRow& row) {
  return row.layout.precision == PrecisionRecipe::bf16 ||
         row.layout.precision == PrecisionRecipe::fp16;
}
double parameters(const PreparedRow& row) {
  return static_cast<double>(count_parameters(row.model).total);
}

NestedNumbers published(const std::vector<BlindRow>& rows, const ModelError& shared) {
  const std::vector<NestedPoint> points = nested_points(rows, shared);
  return nested_numbers(nested_sets(points).front().points);
}

}  // namespace

const std::vector<Transfer>& transfer_kinds() {
  static const std::vector<Transfer> kinds = {
      {"pipelines from PP1", [](const PreparedRow& r) { return r.layout.pp == 1; },
       [](const PreparedRow& r) { return r.layout.pp > 1; }},
      {"TP8 and more from TP1 and TP2", [](const PreparedRow& r) { return r.layout.tp <= 2; },
       [](const PreparedRow& r) { return r.layout.tp >= 8; }},
      {"8 and 4 bits from 16 bits", is_wide, [](const PreparedRow& r) { return !is_wide(r); }},
      {"175B and more from up to 16B",
       [](const PreparedRow& r) { return parameters(r) <= small_model; },
       [](const PreparedRow& r) { return parameters(r) >= large_model; }},
      {"Blackwell from before", [](const PreparedRow& r) { return !is_blackwell(r); },
       is_blackwell},
  };
  return kinds;
}

std::vector<TransferLine> transfer_lines(const std::vector<ScoredRow>& rows,
                                         const std::vector<BlindRow>& left_out,
                                         const ModelError& shared, const FitRun& run) {
  std::vector<TransferLine> lines;
  for (const Transfer& kind : transfer_kinds()) {
    const std::vector<BlindRow> predicted = ordinary(predict_transfer(rows, kind, run));
    std::set<std::string> ids;
    for (const BlindRow& b : predicted) ids.insert(b.row->row->id);
    std::vector<BlindRow> same;
    for (const BlindRow& b : left_out)
      if (ids.contains(b.row->row->id)) same.push_back(b);
    if (predicted.empty() || same.empty()) continue;
    lines.push_back({.name = kind.name,
                     .numbers = published(predicted, shared),
                     .nested_median = published(same, shared).median});
  }
  return lines;
}

}  // namespace orrery
