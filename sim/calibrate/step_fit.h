// Knows how to fit a stack's host, overlap and traffic values to measured steps, a few at a time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "workloads/stack.h"

namespace orrery {

// The stack's values that whole steps can tell (effects of kernels are fitted to operators, not
// here: the two trade off against each other).
const std::vector<std::string>& step_value_names();

// Those of them that are estimates in this stack and not zero: facts and absent effects stay.
std::vector<std::string> fittable_step_values(const Stack& stack);

// Multiplies a value by `factor`; shares stay at most 1. Names that the stack holds as facts or as
// zero are left alone.
void scale_step_value(Stack& stack, const std::string& name, double factor);
double step_value(const Stack& stack, const std::string& name);  // SI

// One measured step, and how the model predicts it when the values are multiplied by factors.
struct StepSample {
  double measured = 0;  // seconds, or any quantity that `predicted` returns too
  std::function<double(std::span<const double> factors)> predicted;
};
struct StepFitOptions {
  int threads = 0;
  int rounds = 10;          // of coordinate descent; the step halves after a round without gain
  double first_step = 0.5;  // in the logarithm of a factor
  double largest = 3;       // factors stay within [1 / largest, largest]
  double ridge = 0.004;     // cost of a factor's squared logarithm: what no row tells stays put
  double outlier = 0.7;     // |log error| beyond which a row counts no more
};
struct StepFit {
  std::vector<double> factors;
  double before = 0, after = 0;  // mean |log error| with outliers cut, without the ridge
  int evaluations = 0;           // of all samples
};

// Coordinate descent over the logarithms of `parameters` factors, from 1 each. Deterministic for
// any number of threads. No samples: all factors are 1.
StepFit fit_steps(std::size_t parameters, std::span<const StepSample> samples,
                  const StepFitOptions& options);

}  // namespace orrery
