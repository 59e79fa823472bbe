// SPDX-License-Identifier: Apache-2.0
// Fits values of serving stacks to what served runs measured, and says how far these decide them.
#include "sim/validate/served/served_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/calibrate/steps/learned.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

struct Sample {
  const ServedSlopes* row = nullptr;
  ServedQuantity quantity = ServedQuantity::tpot;
};
std::vector<Sample> samples_of(const ServedModel& model, const std::string& stack,
                               const ServedFold* without) {
  std::vector<Sample> out;
  for (const ServedSlopes& s : model.rows) {
    if (s.stack != stack || (without != nullptr && leaves_out(*without, s))) continue;
    for (const ServedQuantity q : served_quantities)
      if (measured(s.shipped, q)) out.push_back({&s, q});
  }
  return out;
}

}  // namespace

ServedFold fold_of(const ServedSlopes& s) {
  return {s.shipped.row->family, s.shipped.row->campaign};
}

bool leaves_out(const ServedFold& fold, const ServedSlopes& s) {
  return s.shipped.row->family == fold.first || s.shipped.row->campaign == fold.second;
}

std::string engine_of(const ServingRow& row) {
  return fmt::format("{}@{}/{}", row.software.framework, row.gpu, row.campaign);
}

// Rows of one family and engine of a campaign: they err together.
std::string cell_of(const ServedSlopes& s) {
  return s.shipped.row->family + " x " + engine_of(*s.shipped.row);
}

StepFit fit_served(const ServedModel& model, const std::string& stack, const ServedFold* without,
                   int threads) {
  const std::vector<Sample> chosen = samples_of(model, stack, without);
  std::map<std::string, std::size_t> cells;
  for (const Sample& s : chosen) ++cells[cell_of(*s.row)];
  std::vector<StepSample> samples;
  for (const Sample& s : chosen)
    samples.push_back({.measured = *measured(s.row->shipped, s.quantity),
                       .predicted =
                           [s](std::span<const double> deviations) {
                             return std::exp(s.row->log_predicted(s.quantity, deviations));
                           },
                       .weight = weight_among(cells.at(cell_of(*s.row)))});
  return fit_steps(model.names.at(stack).size(), samples, {.threads = threads});
}

std::vector<FreeValue> served_free_values(const ServedModel& model, const FitRun& run) {
  FreeValueSet found;
  for (const ServedSlopes& s : model.rows)
    if (const auto stack = stack_of(*s.shipped.row))
      found.add(*stack, {.point = s.shipped.row->id,
                         .family = s.shipped.row->family,
                         .source = s.shipped.row->campaign});
  std::vector<FreeValue> values = found.by_stack_and_name();
  for (const auto& [stack, names] : model.names) {
    std::vector<std::vector<double>> slopes;
    for (const Sample& s : samples_of(model, stack, nullptr)) {
      std::vector<double>& line = slopes.emplace_back();
      const auto& lines = s.row->lines[static_cast<std::size_t>(s.quantity)];
      for (std::size_t v = 0; v < names.size(); ++v)
        line.push_back((lines.below[v] + lines.above[v]) / 2);
    }
    const std::vector<double> shares = learned_shares(names.size(), slopes, StepFitOptions().noise);
    const StepFit fit = fit_served(model, stack, nullptr, run.threads);
    for (FreeValue& value : values) {
      const auto at = std::find(names.begin(), names.end(), value.name);
      if ((value.stack != stack && value.stack != "several") || !value.fitted || at == names.end())
        continue;
      const auto index = static_cast<std::size_t>(at - names.begin());
      const StepPrior prior = fitted_prior(value.low, value.high);
      value.prior = prior.middle;
      const double refit = prior.at(fit.deviations[index]);
      value.share = std::max(shares[index], value.share.value_or(0));
      value.refit_low = std::min(refit, value.refit_low.value_or(refit));
      value.refit_high = std::max(refit, value.refit_high.value_or(refit));
    }
  }
  return values;
}

std::string served_fit_text(const ServedModel& model, const FitRun& run) {
  std::string out;
  for (const auto& [stack, names] : model.names) {
    const StepFit fit = fit_served(model, stack, nullptr, run.threads);
    out += fmt::format(
        "\n{}: weighted mean |log error| {:.3f} at the middles of the stated ranges, {:.3f} "
        "fitted\n",
        stack, fit.before, fit.after);
    Table table({"value", "deviations"}, {Align::left});
    for (std::size_t i = 0; i < names.size(); ++i)
      table.add({names[i], fmt::format("{:+.2f}", fit.deviations[i])});
    out += table.text();
  }
  return out;
}

}  // namespace orrery
