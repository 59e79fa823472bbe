// SPDX-License-Identifier: Apache-2.0
// Knows robust nonlinear least squares in a box, and how far its answers can be trusted.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace orrery {

// One number that a fit may move, in any unit. Where the box spans more than a decade above zero
// the search walks in its logarithm.
struct FreeNumber {
  double low = 0, high = 1, start = 0.5;  // low < high; start is brought inside
};

// What is to be explained. `residuals(x, r)` fills r (as long as `rows`) at the point x (as long as
// `free`); residuals are best logarithms of predicted over measured. It is called from several
// threads at once, and values that are not finite count as 1e3.
struct LeastSquaresProblem {
  std::vector<FreeNumber> free;
  std::size_t rows = 0;
  std::function<void(std::span<const double> x, std::span<double> residuals)> residuals;
  std::vector<double> weights;          // of each row; empty: 1
  std::vector<std::uint64_t> families;  // rows that err together; empty: each row by itself
};

struct LeastSquaresOptions {
  double softness = 0.1;  // residual beyond which a row's pull grows no more (soft L1)
  // Cost of a number that stands at the far end of its range from its start (as a share squared):
  // what no row tells stays where it was.
  double ridge = 1e-4;
  int iterations = 60;  // of Levenberg and Marquardt, from each start
  int starts = 8;       // the first from the given point, others drawn from the box
  int polish = 3;       // rounds of coordinate search at the end: leaves the kinks of ceilings
  int refits = 20;      // on families drawn with replacement; 0: no errors
  int threads = 0;      // 0: all cores; the answer does not depend on it
  std::uint64_t seed = 1;
};

struct LeastSquaresFit {
  std::vector<double> values;               // best point
  std::vector<double> errors;               // standard error of each value, from the refits
  std::vector<std::vector<double>> refits;  // best point of each refit: spread of predictions
  double cost = 0;  // weighted sum of 2 s^2 (sqrt(1 + (r/s)^2) - 1), s the softness, and the ridge
  int evaluations = 0;  // of the residuals of all rows
};

// Levenberg-Marquardt with a numerical Jacobian and steps cut at the box, rows reweighted by how
// far they are off. Deterministic for any number of threads. CHECKs the sizes. With no free number
// or no row the answer is the start.
LeastSquaresFit fit_least_squares(const LeastSquaresProblem& problem,
                                  const LeastSquaresOptions& options = {});

// The same from one warm start only, without errors: for refits on parts of the rows. `weights`
// replace the problem's (0 leaves a row out).
std::vector<double> refit_least_squares(const LeastSquaresProblem& problem,
                                        std::span<const double> start,
                                        std::span<const double> weights,
                                        const LeastSquaresOptions& options = {});

}  // namespace orrery
