// SPDX-License-Identifier: Apache-2.0
// Fits stack values to whole steps: the most probable ones, given their stated ranges.
#include "sim/calibrate/steps/step_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/parallel.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/fit/least_squares.h"
#include "workloads/stack/values.h"

namespace orrery {
namespace {

// Of training steps; of whole runs of serving engines.
bool is_fitted(const std::string& source) {
  return source == "orrery-step-fit" || source == "orrery-served-fit";
}

template <class T>
bool is_free(const Sourced<T>& value) {
  return value.known() && value.evidence == Evidence::estimated && in_si(value.get()) > 0 &&
         value.low && value.high && in_si(*value.low) < in_si(*value.high);
}

// A range that starts at zero still has a middle.
double least(double low, double high) { return std::max(low, high / 100); }

StepPrior prior_around(double middle, double low, double high) {
  return {.middle = middle,
          .deviation_below = std::log(middle / least(low, high)) / normal_95,
          .deviation_above = std::log(high / middle) / normal_95};
}

template <class T>
StepPrior prior_of(const Sourced<T>& value) {
  const double high = in_si(*value.high), low = in_si(*value.low);
  if (is_fitted(value.source)) return fitted_prior(low, high);
  return prior_around(std::clamp(in_si(value.get()), least(low, high), high), low, high);
}

double log_error(const StepSample& sample, std::span<const double> deviations) {
  const double predicted = sample.predicted(deviations);
  constexpr double unusable = 3;
  return predicted > 0 && sample.measured > 0 ? std::log(predicted / sample.measured) : unusable;
}

double mean_error(std::span<const StepSample> samples, std::span<const double> deviations,
                  int threads) {
  std::vector<double> error(samples.size());
  parallel_for(samples.size(), threads, [&](std::size_t i) {
    error[i] = samples[i].weight * std::abs(log_error(samples[i], deviations));
  });
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < error.size(); ++i) {
    sum += error[i];
    weights += samples[i].weight;
  }
  return weights > 0 ? sum / weights : 0;
}

}  // namespace

bool is_made_of_steps(const std::string& source) {
  return is_fitted(source) || source == "orrery-first-study" || source == "orrery-published-runs";
}

const std::vector<std::string>& step_value_names() {
  static const std::vector<std::string> names = {"dispatch",
                                                 "layer_sync",
                                                 "moe_sync",
                                                 "step_overhead",
                                                 "tensor_exposed",
                                                 "expert_exposed",
                                                 "data_overlap_window",
                                                 "overlap_cost",
                                                 "debug_per_rank",
                                                 "elementwise_passes"};
  return names;
}

std::vector<std::string> fittable_step_values(std::span<const Stack* const> releases) {
  std::vector<std::string> fitted_before;
  std::set<std::string> free;
  for (const Stack* stack : releases)
    visit_stack_values(*stack, [&](const std::string& name, const auto& value) {
      if (!is_free(value)) return;
      free.insert(name);
      if (is_fitted(value.source) &&
          std::find(fitted_before.begin(), fitted_before.end(), name) == fitted_before.end())
        fitted_before.push_back(name);
    });
  std::vector<std::string> names = fitted_before;
  for (const std::string& name : step_value_names())
    if (free.contains(name) && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  constexpr std::size_t most = 10;
  if (names.size() > most) names.resize(most);
  return names;
}

StepPrior fitted_prior(double low, double high) {
  return prior_around((least(low, high) + high) / 2, low, high);
}

double StepPrior::at(double deviations) const {
  return middle * std::exp(deviations * (deviations < 0 ? deviation_below : deviation_above));
}

double StepPrior::deviations_of(double value) const {
  const double shift = std::log(value / middle);
  const double deviation = shift < 0 ? deviation_below : deviation_above;
  return deviation > 0 ? shift / deviation : 0;
}

std::optional<StepPrior> step_prior(const Stack& stack, const std::string& wanted) {
  std::optional<StepPrior> found;
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (name == wanted && is_free(value)) found = prior_of(value);
  });
  return found;
}

void set_step_value(Stack& stack, const std::string& wanted, double deviations) {
  visit_stack_values(stack, [&](const std::string& name, auto& value) {
    if (name != wanted || !is_free(value)) return;
    using Value = std::remove_cvref_t<decltype(value.get())>;
    const double moved = prior_of(value).at(deviations);
    value.value = Value(is_share(name) ? std::min(1.0, moved) : moved);
  });
}

double step_value(const Stack& stack, const std::string& wanted) {
  double found = 0;
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (name == wanted && value.known()) found = in_si(value.get());
  });
  return found;
}

Stack with_step_values(const Stack& settings, const Stack& values,
                       const std::vector<std::string>& names) {
  Stack joined = settings;
  visit_stack_values(joined, [&](const std::string& name, auto& value) {
    const bool is_moved = std::find(names.begin(), names.end(), name) != names.end();
    if (!is_moved && !is_made_of_steps(value.source)) return;
    visit_stack_values(values, [&](const std::string& other, const auto& from) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>,
                                   std::remove_cvref_t<decltype(from)>>)
        if (other == name) value = from;
    });
  });
  return joined;
}

double weight_among(std::size_t rows) {
  constexpr double shared = 0.1;
  return 1 / (1 + shared * (static_cast<double>(std::max<std::size_t>(rows, 1)) - 1));
}

StepFit fit_steps(std::size_t parameters, std::span<const StepSample> samples,
                  const StepFitOptions& options) {
  StepFit fit{.deviations = std::vector<double>(parameters, 0.0)};
  if (samples.empty()) return fit;
  fit.before = mean_error(samples, fit.deviations, options.threads);
  LeastSquaresProblem problem{.rows = samples.size()};
  problem.free.assign(parameters, {.low = -options.farthest, .high = options.farthest, .start = 0});
  problem.residuals = [&](std::span<const double> x, std::span<double> residuals) {
    parallel_for(samples.size(), options.threads,
                 [&](std::size_t i) { residuals[i] = log_error(samples[i], x); });
  };
  for (const StepSample& sample : samples) problem.weights.push_back(sample.weight);
  // The solver's ridge is the square of a share of the box; a deviation is one part of its width.
  const double width = 2 * options.farthest;
  const LeastSquaresOptions solver{.softness = options.softness,
                                   .ridge = options.noise * options.noise * width * width,
                                   .iterations = 4 * options.iterations,
                                   .threads = 1};
  fit.deviations = refit_least_squares(problem, fit.deviations, problem.weights, solver);
  fit.after = mean_error(samples, fit.deviations, options.threads);
  return fit;
}

}  // namespace orrery
