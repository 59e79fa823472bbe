// SPDX-License-Identifier: Apache-2.0
// Knows how one curve is fitted to its rows, and how far the fit can be trusted.
#pragma once

#include <optional>
#include <vector>

#include "sim/calibrate/fit/fit.h"
#include "sim/calibrate/fit/free_parameters.h"
#include "sim/calibrate/fit/least_squares.h"

namespace orrery {

// Fits the curve of one table, whose other kernels cost what `known` says.
class CurveFit {
 public:
  CurveFit(const ResolvedDevice& device, const Calibration& known, const OperatorTable& table,
           const FitOptions& options);

  FitRow run();
  // After run(): the curve with its quality and region; the conversion that the rows time as well.
  const Curve& curve() const { return curve_; }
  const std::optional<Curve>& conversion() const { return conversion_; }

 private:
  using Rows = std::vector<OperatorRow>;
  Curve first_curve() const;
  void set_evidence(Curve& curve) const;
  LeastSquaresProblem problem(const Rows& rows) const;
  LeastSquaresOptions search() const;
  // Curves of these rows alone, with the free numbers at x.
  Calibration slim(const Rows& rows) const;
  void set(Calibration& calibration, std::span<const double> x) const;
  std::vector<double> log_errors(const Rows& rows, std::span<const double> x) const;
  void cross_validate(FitRow& row, std::span<const double> x) const;
  double growth_outside(const Region& region, std::span<const double> x) const;
  double spread_of(const std::vector<std::vector<double>>& refits) const;
  void describe(FitRow& row, const LeastSquaresFit& fit);

  const ResolvedDevice& device_;
  ResolvedDevice cold_;
  const OperatorTable& table_;
  FitOptions options_;
  Calibration known_;
  Curve curve_;
  std::optional<Curve> conversion_;
  std::vector<Free> free_;
  Rows fitted_, held_, sample_;
};

}  // namespace orrery
