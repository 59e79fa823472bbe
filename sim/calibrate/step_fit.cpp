// Fits stack values to whole steps by coordinate descent in the logarithm of each value.
#include "sim/calibrate/step_fit.h"

#include <algorithm>
#include <cmath>

#include "sim/base/parallel.h"

namespace orrery {
namespace {

bool is_share(const std::string& name) {
  return name.ends_with("_exposed") || name.ends_with("_window");
}

double plain(double value) { return value; }
template <Dimension D>
double plain(Quantity<D> value) {
  return value.si();
}

template <class T>
bool is_free(const Sourced<T>& value) {
  return value.known() && value.evidence == Evidence::estimated && plain(value.get()) > 0;
}

double cost_of(std::span<const StepSample> samples, std::span<const double> factors,
               const StepFitOptions& options) {
  std::vector<double> error(samples.size());
  parallel_for(samples.size(), options.threads, [&](std::size_t i) {
    const double predicted = samples[i].predicted(factors);
    const bool usable = predicted > 0 && samples[i].measured > 0;
    error[i] = usable
                   ? std::min(std::abs(std::log(predicted / samples[i].measured)), options.outlier)
                   : options.outlier;
  });
  double sum = 0;
  for (const double e : error) sum += e;
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

double ridge_of(std::span<const double> logs, const StepFitOptions& options) {
  double sum = 0;
  for (const double x : logs) sum += x * x;
  return options.ridge * sum;
}

std::vector<double> exponentials(std::span<const double> logs) {
  std::vector<double> factors;
  for (const double x : logs) factors.push_back(std::exp(x));
  return factors;
}

}  // namespace

const std::vector<std::string>& step_value_names() {
  static const std::vector<std::string> names = {
      "dispatch",       "elementwise_passes",   "quantise_passes",
      "permute_passes", "loss_bytes_per_logit", "tensor_exposed",
      "expert_exposed", "data_overlap_window",  "moe_sync",
      "debug_per_rank"};
  return names;
}

std::vector<std::string> fittable_step_values(const Stack& stack) {
  std::vector<std::string> free;
  const auto& names = step_value_names();
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (is_free(value) && std::find(names.begin(), names.end(), name) != names.end())
      free.push_back(name);
  });
  return free;
}

void scale_step_value(Stack& stack, const std::string& wanted, double factor) {
  visit_stack_values(stack, [&](const std::string& name, auto& value) {
    if (name != wanted || !is_free(value)) return;
    using Value = std::remove_cvref_t<decltype(value.get())>;
    const double scaled = plain(value.get()) * factor;
    value.value = Value(is_share(name) ? std::min(1.0, scaled) : scaled);
  });
}

double step_value(const Stack& stack, const std::string& wanted) {
  double found = 0;
  visit_stack_values(stack, [&](const std::string& name, const auto& value) {
    if (name == wanted && value.known()) found = plain(value.get());
  });
  return found;
}

StepFit fit_steps(std::size_t parameters, std::span<const StepSample> samples,
                  const StepFitOptions& options) {
  std::vector<double> logs(parameters, 0.0);
  StepFit fit{.factors = exponentials(logs)};
  if (samples.empty()) return fit;
  const double limit = std::log(options.largest);
  const auto total = [&](const std::vector<double>& at) {
    ++fit.evaluations;
    return cost_of(samples, exponentials(at), options) + ridge_of(at, options);
  };
  fit.before = cost_of(samples, fit.factors, options);
  double best = total(logs);
  double step = options.first_step;
  for (int round = 0; round < options.rounds; ++round) {
    bool gained = false;
    for (std::size_t p = 0; p < parameters; ++p) {
      for (const double direction : {step, -step}) {
        std::vector<double> trial = logs;
        trial[p] = std::clamp(trial[p] + direction, -limit, limit);
        const double cost = total(trial);
        if (cost >= best) continue;
        best = cost;
        logs = trial;
        gained = true;
        break;
      }
    }
    if (!gained) step /= 2;
  }
  fit.factors = exponentials(logs);
  fit.after = cost_of(samples, fit.factors, options);
  return fit;
}

}  // namespace orrery
