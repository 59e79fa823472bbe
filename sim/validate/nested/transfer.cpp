// SPDX-License-Identifier: Apache-2.0
// Predicts each kind of run by fits to another kind.
#include "sim/validate/nested/transfer.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

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

NestedNumbers published(const std::vector<BlindRow>& rows, const std::vector<BlindRow>& evidence,
                        const ModelError& shared) {
  const std::vector<NestedPoint> points = nested_points(rows, evidence, shared);
  return nested_numbers(nested_sets(points).front().points);
}

// The line of rows that were predicted from another kind, beside the nested error of the same rows.
void add_line(std::vector<TransferLine>& lines, const std::string& name,
              const std::vector<BlindRow>& predicted, const std::vector<BlindRow>& evidence,
              const std::vector<BlindRow>& left_out, const ModelError& shared) {
  std::set<std::string> ids;
  for (const BlindRow& b : predicted) ids.insert(b.row->row->id);
  std::vector<BlindRow> same;
  for (const BlindRow& b : left_out)
    if (ids.contains(b.row->row->id)) same.push_back(b);
  if (predicted.empty() || same.empty()) return;
  lines.push_back({.name = name,
                   .numbers = published(predicted, evidence, shared),
                   .nested_median = published(same, same, shared).median});
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

std::vector<BlindRow> unscripted_rows(FoldFits& nested, const std::vector<ScoredRow>& rows,
                                      const std::vector<ScoredRow>& scripted, const FitRun& run) {
  std::map<std::string, std::optional<double>> errors;
  for (const ScoredRow& row : scripted) errors[row.row->id] = row.speed_error;
  std::vector<BlindRow> out;
  for (BlindRow& b : predict_blind(nested, run, &rows)) {
    if (errors.at(b.row->row->id) != b.row->speed_error) out.push_back(std::move(b));
  }
  return out;
}

std::vector<BlindRow> stand_in_rows(FoldFits& nested, const std::vector<ScoredRow>& rows,
                                    const FitRun& run) {
  std::vector<BlindRow> out;
  for (BlindRow& b : predict_blind(nested, run, &rows))
    if (!b.row->row->program.empty()) out.push_back(std::move(b));
  return out;
}

std::vector<BlindRow> other_values_rows(FoldFits& nested, const std::vector<ScoredRow>& rows,
                                        const std::vector<ScoredRow>& own, const FitRun& run) {
  std::set<std::string> met;
  for (const ScoredRow& row : rows)
    if (!row.row->program.empty()) met.insert(row.row->id);
  std::vector<BlindRow> out;
  for (BlindRow& b : predict_blind(nested, run, &rows, &own))
    if (met.contains(b.row->row->id)) out.push_back(std::move(b));
  return out;
}

std::vector<BlindRow> joined(std::vector<BlindRow> left_out, const std::vector<BlindRow>& more) {
  left_out.insert(left_out.end(), more.begin(), more.end());
  return left_out;
}

std::vector<TransferLine> transfer_lines(const std::vector<ScoredRow>& rows,
                                         const std::vector<BlindRow>& left_out,
                                         const std::vector<BlindRow>& unscripted,
                                         const std::vector<BlindRow>& other_values,
                                         const std::vector<BlindRow>& stand_ins,
                                         const ModelError& shared, const FitRun& run) {
  std::vector<TransferLine> lines;
  for (const Transfer& kind : transfer_kinds()) {
    const std::vector<BlindRow> predicted = ordinary(predict_transfer(rows, kind, run));
    add_line(lines, kind.name, predicted, predicted, left_out, shared);
  }
  add_line(lines, unscripted_transfer, ordinary(unscripted), joined(left_out, unscripted), left_out,
           shared);
  add_line(lines, values_transfer, ordinary(other_values), joined(left_out, other_values), left_out,
           shared);
  add_line(lines, stand_in_transfer, ordinary(stand_ins), joined(left_out, stand_ins), left_out,
           shared);
  return lines;
}

}  // namespace orrery
