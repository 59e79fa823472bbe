// SPDX-License-Identifier: Apache-2.0
// Says how far measured runs decide the stacks' uncertain values: priors, slopes of predictions,
// shares, and where a fit to all runs moves each.
#include <algorithm>
#include <cmath>

#include "sim/base/parallel.h"
#include "sim/calibrate/steps/learned.h"
#include "sim/calibrate/steps/step_fit.h"
#include "sim/validate/nested/free_values.h"
#include "sim/validate/score/predict.h"

namespace orrery {
namespace {

// By how much the logarithm of the row's step moves with one deviation of the value's prior, about
// the value as shipped. A side on which the value cannot move is left out.
double slope_of(const PreparedRow& row, const std::string& name, const StepPrior& prior) {
  constexpr double apart = 0.5;  // deviations
  const double shipped = step_value(row.stack, name), at = prior.deviations_of(shipped);
  double change = 0, sides = 0, before = 0;
  for (const double side : {-apart, apart}) {
    Stack stack = row.stack;
    set_step_value(stack, name, at + side);
    const bool moved = step_value(stack, name) != shipped;
    const double seconds = predict_step(row, moved ? stack : row.stack);
    if (moved) sides += apart;
    change = before > 0 ? std::log(seconds / before) : 0;
    before = seconds;
  }
  return sides > 0 ? change / sides : 0;
}

// Slopes of every operating point, a line each, in the order of the values.
using Slopes = std::vector<std::vector<double>>;
Slopes slopes_of(const std::vector<FreeValue>& values, int threads) {
  std::map<std::string, std::vector<std::size_t>> values_of_point;
  for (std::size_t v = 0; v < values.size(); ++v)
    for (const auto& [point, row] : values[v].points) values_of_point[point].push_back(v);
  std::vector<std::pair<std::string, std::vector<std::size_t>>> points(values_of_point.begin(),
                                                                       values_of_point.end());
  Slopes slopes(points.size(), std::vector<double>(values.size(), 0));
  parallel_for(points.size(), threads, [&](std::size_t p) {
    const auto& [point, used] = points[p];
    for (const std::size_t v : used) {
      const PreparedRow& row = *values[v].points.at(point);
      if (const auto prior = step_prior(row.stack, values[v].name))
        slopes[p][v] = slope_of(row, values[v].name, *prior);
    }
  });
  return slopes;
}

// Shares in a fit of those values that `part` accepts; 0 for the others.
template <class Part>
std::vector<double> shares_of(const std::vector<FreeValue>& values, const Slopes& slopes,
                              Part part) {
  std::vector<std::size_t> chosen;
  for (std::size_t v = 0; v < values.size(); ++v)
    if (part(values[v])) chosen.push_back(v);
  Slopes lines;
  for (const std::vector<double>& all : slopes) {
    std::vector<double>& line = lines.emplace_back();
    for (const std::size_t v : chosen) line.push_back(all[v]);
  }
  const std::vector<double> found = learned_shares(chosen.size(), lines, StepFitOptions().noise);
  std::vector<double> shares(values.size(), 0);
  for (std::size_t i = 0; i < chosen.size(); ++i) shares[chosen[i]] = found[i];
  return shares;
}

void add_refit(FreeValue& value, const StackValues& fit, const Stack& shipped) {
  const auto found = std::find(fit.names.begin(), fit.names.end(), value.name);
  if (found == fit.names.end()) return;
  Stack stack = shipped;
  set_step_value(stack, value.name,
                 fit.deviations[static_cast<std::size_t>(found - fit.names.begin())]);
  const double refit = step_value(stack, value.name);
  value.refit_low = std::min(refit, value.refit_low.value_or(refit));
  value.refit_high = std::max(refit, value.refit_high.value_or(refit));
}

}  // namespace

void compare_with_fit(std::vector<FreeValue>& values, const std::vector<ScoredRow>& rows,
                      const FitRun& run) {
  const Slopes slopes = slopes_of(values, run.threads);
  const auto fitted = shares_of(values, slopes, [](const FreeValue& v) { return v.fitted; });
  const auto both = shares_of(values, slopes, [](const FreeValue&) { return true; });
  const std::vector<StackValues> fits = fit_stacks(rows, run);
  for (std::size_t i = 0; i < values.size(); ++i) {
    FreeValue& v = values[i];
    std::map<std::string, const Stack*> stacks;
    for (const auto& [point, row] : v.points) stacks.emplace(row->stack.name, &row->stack);
    const auto prior = step_prior(*stacks.begin()->second, v.name);
    if (!prior) continue;
    v.prior = prior->middle;
    v.share = v.fitted ? fitted[i] : both[i];
    for (const StackValues& fit : fits)
      if (const auto own = stacks.find(fit.stack); own != stacks.end())
        add_refit(v, fit, *own->second);
  }
}

}  // namespace orrery
