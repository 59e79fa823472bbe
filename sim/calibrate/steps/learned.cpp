// SPDX-License-Identifier: Apache-2.0
// Computes the hat matrix of a linear fit that priors of unit width hold.
#include "sim/calibrate/steps/learned.h"

#include <Eigen/Dense>

#include "sim/base/errors/check.h"

namespace orrery {

std::vector<double> learned_shares(std::size_t values, std::span<const std::vector<double>> slopes,
                                   double noise) {
  const auto size = static_cast<Eigen::Index>(values);
  Eigen::MatrixXd told = Eigen::MatrixXd::Zero(size, size);
  for (const std::vector<double>& sample : slopes) {
    ORRERY_CHECK(sample.size() == values, "a slope for each value");
    const Eigen::Map<const Eigen::VectorXd> slope(sample.data(), size);
    told.selfadjointView<Eigen::Lower>().rankUpdate(slope, 1 / (noise * noise));
  }
  told.diagonal().array() += 1;  // of the priors
  const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(size, size);
  const Eigen::MatrixXd variance = told.selfadjointView<Eigen::Lower>().llt().solve(identity);
  std::vector<double> shares;
  for (Eigen::Index i = 0; i < size; ++i) shares.push_back(1 - variance(i, i));
  return shares;
}

}  // namespace orrery
