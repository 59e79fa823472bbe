// SPDX-License-Identifier: Apache-2.0
// Knows how to fit a stack's host, overlap and traffic values to measured steps, a few at a time.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/stack/stack.h"

namespace orrery {

// A stack's values that whole steps can tell: host, overlap and exposure (effects of kernels are
// fitted to operators, not here: the two trade off against each other).
const std::vector<std::string>& step_value_names();

// Whether whole steps, or whole runs of a served model, have made a value of that source (an id of
// hw_models/catalog/sources).
bool is_made_of_steps(const std::string& source);

// At most ten names of values that a fit of these releases of a stack may move: first all that were
// fitted to whole steps before (source "orrery-step-fit"), so that no row is predicted by a value
// that saw it, then step_value_names(). Only estimates with a range: facts and absent effects stay.
std::vector<std::string> fittable_step_values(std::span<const Stack* const> releases);

// What is known of a value without whole steps: low and high are the 5th and the 95th percentile,
// each side of the middle of its own width in the logarithm. The middle is the value, but that of
// the stated range where the value itself was fitted to whole steps
// (source "orrery-step-fit"), so that leaving rows out leaves them out of the prior too.
struct StepPrior {
  double middle = 0, deviation_below = 0, deviation_above = 0;  // SI; of the logarithm
  double at(double deviations) const;
  // The inverse; 0 where the prior has no width on that side.
  double deviations_of(double value) const;
};
// Of a value that was fitted, with that range.
StepPrior fitted_prior(double low, double high);
// The prior of a value that a fit may move; nullopt for others and for names that the stack lacks.
std::optional<StepPrior> step_prior(const Stack& stack, const std::string& name);

// Puts the value `deviations` standard deviations from the middle of its own prior: one number
// moves all releases of a stack, each within its own range. Shares stay at most 1. Names that the
// stack holds as facts or as zero are left alone.
void set_step_value(Stack& stack, const std::string& name, double deviations);
double step_value(const Stack& stack, const std::string& name);  // SI
// `settings` with the values of `values` where whole steps have made its own, and where a fit of
// `values` moves them (`names`).
Stack with_step_values(const Stack& settings, const Stack& values,
                       const std::vector<std::string>& names);

// One measured step, and how the model predicts it when the values lie so many deviations from the
// middles of their priors.
struct StepSample {
  double measured = 0;  // seconds, or any quantity that `predicted` returns too
  std::function<double(std::span<const double> deviations)> predicted;
  double weight = 1;  // of independent measurements: rows of one table err together
};
struct StepFitOptions {
  int threads = 0;
  int iterations = 12;    // of Levenberg and Marquardt
  double noise = 0.15;    // what a row is off though all values are right: against the priors
  double softness = 0.1;  // |log error| beyond which a row's pull grows no more
  double farthest = 2.5;  // deviations that a value may move
};
struct StepFit {
  std::vector<double> deviations;
  double before = 0, after = 0;  // weighted mean |log error| at the middles and as fitted
};

// The most probable values: errors of rows against the priors, robust. Deterministic for any number
// of threads. No samples: all stay at their middles.
StepFit fit_steps(std::size_t parameters, std::span<const StepSample> samples,
                  const StepFitOptions& options);

// Weights under which `rows` rows that err together by a tenth of their variance count as much as
// they tell.
double weight_among(std::size_t rows);

}  // namespace orrery
