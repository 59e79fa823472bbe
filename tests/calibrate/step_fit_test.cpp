// SPDX-License-Identifier: Apache-2.0
// Tests the fit of stack values to whole steps: what it finds, and what it leaves alone.
#include "sim/calibrate/steps/step_fit.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "hw_models/catalog.h"

namespace orrery {
namespace {

Stack some_stack() {
  Stack stack = load_stack("megatron-core", {.architecture = "hopper"},
                           data_root() / "workloads/catalog/stacks");
  stack.host.dispatch = {.value = Seconds(10e-6),
                         .low = Seconds(5e-6),
                         .high = Seconds(20e-6),
                         .evidence = Evidence::estimated,
                         .source = "orrery-first-study"};
  return stack;
}

// Rows that a stack value at `truth` deviations explains, but for `noise`.
std::vector<StepSample> rows(double truth, double noise, std::size_t count) {
  std::vector<StepSample> samples;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = 0.2 + 0.6 * static_cast<double>(i) / static_cast<double>(count);
    const auto step = [share](double deviations) {
      return 1 - share + share * std::exp(0.4 * deviations);
    };
    const double off = noise * ((i % 2 == 0) ? 1 : -1);
    samples.push_back({.measured = step(truth) * std::exp(off),
                       .predicted = [step](std::span<const double> x) { return step(x[0]); }});
  }
  return samples;
}

TEST_CASE("low and high are the 5th and the 95th percentile of a value that steps may move") {
  Stack stack = some_stack();
  set_step_value(stack, "dispatch", 1.6449);
  CHECK(step_value(stack, "dispatch") == Approx(20e-6).epsilon(1e-3));
  stack = some_stack();
  set_step_value(stack, "dispatch", -1.6449);
  CHECK(step_value(stack, "dispatch") == Approx(5e-6).epsilon(1e-3));
  stack = some_stack();
  set_step_value(stack, "dispatch", 0);
  CHECK(step_value(stack, "dispatch") == Approx(10e-6));
}

TEST_CASE("a value that was fitted to steps starts from the middle of its range") {
  Stack stack = some_stack();
  stack.host.dispatch.value = Seconds(18e-6);
  stack.host.dispatch.source = "orrery-step-fit";
  set_step_value(stack, "dispatch", 0);
  CHECK(step_value(stack, "dispatch") == Approx(12.5e-6));
}

TEST_CASE("facts, zeroes and values without a range are not moved, shares stay below one") {
  Stack stack = some_stack();
  stack.host.dispatch.evidence = Evidence::measured;
  set_step_value(stack, "dispatch", 1);
  CHECK(step_value(stack, "dispatch") == Approx(10e-6));
  const std::vector<const Stack*> releases = {&stack};
  for (const std::string& name : fittable_step_values(releases)) CHECK(name != "dispatch");
  stack = some_stack();
  stack.communication.tensor_exposed = {
      .value = 0.9, .low = 0.5, .high = 1.0, .evidence = Evidence::estimated};
  set_step_value(stack, "tensor_exposed", 2.5);
  CHECK(step_value(stack, "tensor_exposed") <= 1);
}

TEST_CASE("a program keeps its settings and facts with the step values of another") {
  Stack own = some_stack(), other = some_stack();
  own.launcher = Launcher::torchtitan;
  own.host.step_overhead = {.value = Seconds(3e-3), .evidence = Evidence::measured, .source = "x"};
  other.host.step_overhead.value = Seconds(9e-3);
  other.host.dispatch.value = Seconds(15e-6);
  other.communication.overlap_cost.value = 0.33;
  const Stack joined = with_step_values(own, other, {"overlap_cost"});
  CHECK(joined.launcher == own.launcher);
  CHECK(step_value(joined, "dispatch") == 15e-6);      // whole steps made it
  CHECK(step_value(joined, "overlap_cost") == 0.33);   // a fit moves it
  CHECK(step_value(joined, "step_overhead") == 3e-3);  // measured by itself
}

TEST_CASE("at most ten values are fitted, and first those that were fitted to steps before") {
  Stack stack = some_stack();
  stack.kernels.kernel_age = {.value = 1.1,
                              .low = 1.0,
                              .high = 1.2,
                              .evidence = Evidence::estimated,
                              .source = "orrery-step-fit"};
  const std::vector<const Stack*> releases = {&stack};
  const auto names = fittable_step_values(releases);
  CHECK(names.size() <= 10);
  CHECK(std::find(names.begin(), names.end(), "kernel_age") != names.end());
  CHECK(std::find(names.begin(), names.end(), "dispatch") != names.end());
}

TEST_CASE("many rows move a value to the truth, few stay near what was known, none move nothing") {
  const StepFit many = fit_steps(1, rows(1.2, 0.02, 400), {.threads = 1});
  CHECK(many.deviations[0] == Approx(1.2).margin(0.1));
  CHECK(many.after < many.before);
  const StepFit few = fit_steps(1, rows(1.2, 0.02, 2), {.threads = 1});
  CHECK(few.deviations[0] > 0);
  CHECK(few.deviations[0] < many.deviations[0]);
  CHECK(fit_steps(1, {}, {.threads = 1}).deviations[0] == 0);
}

TEST_CASE("rows that are far off do not pull a value out of its range") {
  std::vector<StepSample> samples = rows(0, 0.02, 60);
  for (std::size_t i = 0; i < 10; ++i) samples[i].measured *= 5;
  const StepFit fit = fit_steps(1, samples, {.threads = 1});
  CHECK(std::abs(fit.deviations[0]) < 1);
  // A thousand rows of one table that err together weigh no more than ten that do not.
  CHECK(1000 * weight_among(1000) < 10);
  CHECK(weight_among(1) == 1);
}

TEST_CASE("the fit is the same for any number of threads") {
  const auto samples = rows(0.7, 0.1, 50);
  CHECK(fit_steps(1, samples, {.threads = 1}).deviations ==
        fit_steps(1, samples, {.threads = 2}).deviations);
}

}  // namespace
}  // namespace orrery
