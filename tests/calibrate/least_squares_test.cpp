// SPDX-License-Identifier: Apache-2.0
// Tests least squares: minima inside and at the box, kinks, outliers, errors that cover the truth.
#include "sim/calibrate/fit/least_squares.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"

namespace orrery {
namespace {

TEST_CASE("the search finds the end of a bent valley") {
  LeastSquaresProblem p;
  p.free = {{-2, 2, -1}, {-2, 2, 1.5}};
  p.rows = 2;
  p.residuals = [](std::span<const double> x, std::span<double> r) {
    r[0] = 1 - x[0];
    r[1] = 10 * (x[1] - x[0] * x[0]);
  };
  const LeastSquaresFit fit = fit_least_squares(p, {.softness = 1e3, .refits = 0});
  CHECK(fit.values[0] == Approx(1).margin(1e-3));
  CHECK(fit.values[1] == Approx(1).margin(2e-3));
}

// A time law with three numbers over decades, and steps as tiles have them.
double law(double size, std::span<const double> x) {
  return x[0] + std::ceil(size / 64) * 64 / x[1] * (1 + x[2] / size);
}

LeastSquaresProblem timed_law(double noise, std::uint64_t seed, std::vector<double>& measured) {
  LeastSquaresProblem p;
  p.free = {{1e-7, 1e-3, 1e-5}, {1e5, 1e10, 1e6}, {1, 1e4, 20}};
  RandomStream random(seed, 0);
  const double truth[] = {4e-6, 3e7, 300};
  for (int i = 0; i < 120; ++i) {
    const double size = std::exp2(4 + 0.1 * i);
    measured.push_back(law(size, truth) * std::exp(random.normal(0, noise)));
    p.families.push_back(static_cast<std::uint64_t>(i / 4));
  }
  p.rows = measured.size();
  p.residuals = [&measured](std::span<const double> x, std::span<double> r) {
    for (std::size_t i = 0; i < r.size(); ++i)
      r[i] = std::log(law(std::exp2(4 + 0.1 * static_cast<double>(i)), x) / measured[i]);
  };
  return p;
}

TEST_CASE("parameters come back within their stated errors") {
  const double truth[] = {4e-6, 3e7, 300};
  int covered = 0, asked = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    std::vector<double> measured;
    const LeastSquaresProblem p = timed_law(0.03, seed, measured);
    const LeastSquaresFit fit = fit_least_squares(p, {.refits = 20});
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(fit.values[i] == Approx(truth[i]).epsilon(0.15));
      CHECK(fit.errors[i] > 0);
      covered += std::abs(fit.values[i] - truth[i]) < 2 * fit.errors[i] ? 1 : 0;
      ++asked;
    }
  }
  // Two standard errors hold 95% of the cases, of 36 all but some.
  CHECK(covered >= asked * 3 / 4);
}

TEST_CASE("a doctored row moves the answer little") {
  std::vector<double> measured;
  const LeastSquaresProblem p = timed_law(0.02, 3, measured);
  const LeastSquaresFit clean = fit_least_squares(p, {.refits = 0});
  for (const std::size_t row : {10U, 60U, 110U}) {
    const double before = measured[row];
    measured[row] *= 5;
    const LeastSquaresFit doctored = fit_least_squares(p, {.refits = 0});
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(doctored.values[i] == Approx(clean.values[i]).epsilon(0.04));
    measured[row] = before;
  }
}

TEST_CASE("the answer does not depend on the threads, and stays in the box") {
  std::vector<double> measured;
  LeastSquaresProblem p = timed_law(0.05, 9, measured);
  const LeastSquaresFit one = fit_least_squares(p, {.refits = 6, .threads = 1});
  const LeastSquaresFit four = fit_least_squares(p, {.refits = 6, .threads = 4});
  CHECK(one.values == four.values);
  CHECK(one.errors == four.errors);
  CHECK(one.refits == four.refits);
  p.free[1] = {1e5, 2e7, 1e6};  // the truth lies outside
  const LeastSquaresFit held = fit_least_squares(p, {.refits = 2});
  CHECK(held.values[1] == Approx(2e7));
  for (const auto& x : held.refits) CHECK(x[1] <= 2e7 * (1 + 1e-12));
}

TEST_CASE("rows without weight do not count, and nothing to fit is no error") {
  std::vector<double> measured;
  const LeastSquaresProblem p = timed_law(0.0, 1, measured);
  std::vector<double> weights(p.rows, 1.0);
  for (std::size_t i = 0; i < 40; ++i) {
    measured[i] *= 2;
    weights[i] = 0;
  }
  const auto at = refit_least_squares(p, std::vector<double>{4.5e-6, 2.5e7, 250}, weights);
  CHECK(at[1] == Approx(3e7).epsilon(1e-3));
  CHECK(fit_least_squares({.free = {{0, 1, 0.3}}}).values == std::vector<double>{0.3});
}

TEST_CASE("predictions that are no numbers are bad, not fatal") {
  LeastSquaresProblem p;
  p.free = {{0, 1, 0.9}};
  p.rows = 1;
  p.residuals = [](std::span<const double> x, std::span<double> r) {
    r[0] = x[0] > 0.5 ? std::nan("") : x[0] - 0.25;
  };
  CHECK(fit_least_squares(p).values[0] == Approx(0.25).margin(1e-3));
}

}  // namespace
}  // namespace orrery
