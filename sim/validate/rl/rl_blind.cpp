// SPDX-License-Identifier: Apache-2.0
// Leaves each model's rows out of the errors that their ranges are made of.
#include "sim/validate/rl/rl_blind.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/base/errors/check.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/steps/error_fit.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

// Steps that were measured, of all models but one. No values are fitted to them: what is left out
// is errors alone.
std::vector<BlindResidual> residuals_without(const std::vector<RlRow>& rows,
                                             const std::string& model) {
  std::vector<BlindResidual> residuals;
  for (const RlRow& row : rows) {
    const auto value = measured(row, RlQuantity::step);
    if (!value || row.model == model) continue;
    residuals.push_back({.run = rl_run(row.job),
                         .source = row.model,
                         .cell = row.model + ", " + row.gpu,
                         .twin = row.id,
                         .log_error = std::log(*value / predicted(row, RlQuantity::step)),
                         .stated = {}});
  }
  return residuals;
}

constexpr const char* no_model = "";

struct Held {
  int rows = 0, held = 0, rates = 0, rates_held = 0;
  std::vector<double> widths;
};

void add(Held& held, const RlRange& range, const RlRow& row) {
  const auto step = covers(range, row, RlQuantity::step);
  if (!step) return;
  ++held.rows;
  held.held += *step ? 1 : 0;
  held.widths.push_back(range.high - range.low);
  if (const auto rate = covers(range, row, RlQuantity::tokens_s_gpu)) {
    ++held.rates;
    held.rates_held += *rate ? 1 : 0;
  }
}

}  // namespace

std::optional<RlError> rl_error(const std::vector<RlRow>& rows) {
  const auto residuals = residuals_without(rows, no_model);
  if (residuals.empty()) return std::nullopt;
  return RlError{.step = fit_model_error(residuals)};
}

std::vector<RlRange> rl_ranges(const std::vector<RlRow>& rows, const RlError& error) {
  std::vector<RlRange> ranges;
  for (const RlRow& row : rows)
    ranges.push_back(row.scored() ? rl_range(rl_run(row.job), error) : RlRange{});
  return ranges;
}

std::vector<RlRange> rl_ranges_of_others(const std::vector<RlRow>& rows) {
  std::map<std::string, RlError> errors;
  for (const RlRow& row : rows) {
    if (!measured(row, RlQuantity::step) || errors.contains(row.model)) continue;
    const auto others = residuals_without(rows, row.model);
    if (others.empty())
      throw Error({.file = "steps of RL",
                   .found = "those of " + row.model + " alone",
                   .expected = "rows of several models: ranges are made of others' errors"});
    errors[row.model] = {.step = fit_model_error(others)};
  }
  std::vector<RlRange> ranges;
  for (const RlRow& row : rows) {
    const auto found = errors.find(row.model);
    ranges.push_back(row.scored() && found != errors.end()
                         ? rl_range(rl_run(row.job), found->second)
                         : RlRange{});
  }
  return ranges;
}

std::optional<bool> covers(const RlRange& range, const RlRow& row, RlQuantity quantity) {
  const auto value = measured(row, quantity);
  if (!value) return std::nullopt;
  const double factor = *value / predicted(row, quantity);
  return quantity == RlQuantity::step ? range.low <= factor && factor <= range.high
                                      : range.least_rate() <= factor && factor <= range.most_rate();
}

double covered_share(const std::vector<RlRow>& rows, const std::vector<RlRange>& ranges,
                     RlQuantity quantity) {
  double all = 0, held = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (const auto one = covers(ranges[i], rows[i], quantity)) {
      all += 1;
      held += *one ? 1 : 0;
    }
  return all > 0 ? held / all : 1;
}

std::string rl_blind_text(const std::vector<RlRow>& rows) {
  const std::vector<RlRange> ranges = rl_ranges_of_others(rows);
  std::map<std::string, Held> models;
  Held all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    add(models[rows[i].model], ranges[i], rows[i]);
    add(all, ranges[i], rows[i]);
  }
  Table table({"90% ranges", "steps", "held", "tok/s", "held", "width"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right});
  const auto line = [&](const std::string& name, const Held& h) {
    if (h.rows == 0) return;
    table.add({name, std::to_string(h.rows), std::to_string(h.held), std::to_string(h.rates),
               std::to_string(h.rates_held), fmt::format("{:.0f}%", 100 * median(h.widths))});
  };
  for (const auto& [name, held] : models) line(name, held);
  line("all", all);
  return "\n90% ranges of a step, made of the errors of all other models' rows: how many measured\n"
         "values they hold, and their median width\n" +
         table.text();
}

}  // namespace orrery
