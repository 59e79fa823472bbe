// SPDX-License-Identifier: Apache-2.0
// Writes errors of served runs as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/statistics.h"
#include "sim/paper/tables.h"
#include "sim/validate/served/served_rows.h"

namespace orrery {
namespace {

const char* unit_of(ServedQuantity quantity) {
  return quantity == ServedQuantity::tokens_s_gpu ? "tokens/s/GPU" : "s";
}

const ServedRange& range_of(ServedQuantity quantity, const ServedRanges& ranges) {
  return quantity == ServedQuantity::ttft   ? ranges.ttft
         : quantity == ServedQuantity::tpot ? ranges.tpot
                                            : ranges.tokens_s_gpu;
}

const char* mode_of(const ServingRow& row) { return row.disaggregated ? "disagg" : "agg"; }

// Signed errors by quantity.
using Errors = std::map<std::string, std::vector<double>>;

struct Group {
  std::string name;
  int rows = 0;
  Errors errors;
};

void add(Group& group, const ServedRow& s) {
  ++group.rows;
  for (const ServedFigure& f : served_figures(s))
    if (f.skipped.empty())
      group.errors[std::string(served_quantity_text[f.quantity])].push_back(
          f.predicted / f.measured - 1);
}

std::vector<Group> groups_of(const std::vector<ServedRow>& rows) {
  std::map<std::string, Group> by_name;
  Group all{.name = "all"}, guessed{.name = "all with mtp"}, plain{.name = "all without"};
  for (const ServedRow& s : rows) {
    if (!s.skipped.empty()) continue;
    const ServingRow& r = *s.row;
    const bool with = guesses(r);
    const std::string name = fmt::format("{} {} {} {}{}", r.gpu, r.software.framework, r.precision,
                                         mode_of(r), with ? " mtp" : "");
    Group& group = by_name[name];
    group.name = name;
    add(group, s);
    add(with ? guessed : plain, s);
    add(all, s);
  }
  std::vector<Group> out;
  for (auto& [name, group] : by_name) out.push_back(std::move(group));
  if (guessed.rows > 0) {
    out.push_back(std::move(guessed));
    if (plain.rows > 0) out.push_back(std::move(plain));
  }
  if (all.rows > 0) out.push_back(std::move(all));
  return out;
}

double middle(std::vector<double> values, double percent, bool absolute) {
  if (absolute)
    for (double& v : values) v = std::abs(v);
  return percentile(values, percent);
}

std::vector<std::string> cells(const Group& group) {
  std::vector<std::string> row{group.name, std::to_string(group.rows)};
  for (const char* quantity : {"tpot", "ttft", "tokens_s_gpu"}) {
    const auto found = group.errors.find(quantity);
    if (found == group.errors.end()) {
      row.insert(row.end(), {"", "", ""});
      continue;
    }
    row.push_back(fmt::format("{:.1f}", 100 * middle(found->second, 50, true)));
    row.push_back(fmt::format("{:.1f}", 100 * middle(found->second, 90, true)));
    row.push_back(fmt::format("{:+.1f}", 100 * middle(found->second, 50, false)));
  }
  return row;
}

std::string skipped_text(const std::vector<ServedRow>& rows) {
  std::map<std::string, int> reasons;
  for (const ServedRow& s : rows)
    if (!s.skipped.empty()) {
      const std::size_t end = std::min(s.skipped.find_first_of(":("), s.skipped.size());
      ++reasons[s.row->rule.empty() ? s.skipped.substr(0, end) : "rule " + s.row->rule];
    }
  if (reasons.empty()) return "";
  std::string text = "\nNot scored (--json has each row's sentence):\n";
  for (const auto& [reason, count] : reasons) text += fmt::format("  {:>5}  {}\n", count, reason);
  return text;
}

Json errors_json(const Group& group) {
  Json out = {{"kind", "served"}, {"name", group.name}, {"rows", group.rows}};
  for (const auto& [quantity, errors] : group.errors)
    out[quantity] = {{"median_error", middle(errors, 50, true)},
                     {"p90_error", middle(errors, 90, true)},
                     {"bias", middle(errors, 50, false)},
                     {"count", errors.size()}};
  return out;
}

}  // namespace

std::string served_text(const std::vector<ServedRow>& rows) {
  Table table(
      {"served runs", "rows", "TPOT", "p90", "bias", "TTFT", "p90", "bias", "tok/s", "p90", "bias"},
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
       Align::right, Align::right, Align::right, Align::right, Align::right});
  for (const Group& group : groups_of(rows)) table.add(cells(group));
  return "\nLatencies and output tokens/s/GPU, predicted against measured, in percent: |error|\n"
         "(median, 90th percentile) and its median with sign\n" +
         table.text() + skipped_text(rows);
}

void add_served_json(const std::vector<ServedRow>& rows, const ServedError& error, Json& row_list,
                     Json& group_list) {
  for (const ServedRow& s : rows) {
    const ServingRow& r = *s.row;
    const Json group = {{"gpu", r.gpu},
                        {"framework", r.software.framework},
                        {"model", r.model.empty() ? r.model_told : r.model},
                        {"precision", r.precision},
                        {"mode", mode_of(r)},
                        {"speculation", serving_speculation_text[r.software.speculation]}};
    const ServedRanges ranges = served_ranges(run_kind(s), error);
    for (const ServedFigure& f : served_figures(s)) {
      const ServedRange& range = range_of(f.quantity, ranges);
      const auto or_null = [&](double value) {
        return f.skipped.empty() ? Json(value) : Json(nullptr);
      };
      row_list.push_back({{"id", r.id},
                          {"quantity", served_quantity_text[f.quantity]},
                          {"unit", unit_of(f.quantity)},
                          {"predicted", or_null(f.predicted)},
                          {"measured", f.measured},
                          {"low", or_null(f.predicted * range.low)},
                          {"high", or_null(f.predicted * range.high)},
                          {"skipped", f.skipped.empty() ? Json(nullptr) : Json(f.skipped)},
                          {"group", group}});
    }
  }
  for (const Group& group : groups_of(rows)) group_list.push_back(errors_json(group));
}

}  // namespace orrery
