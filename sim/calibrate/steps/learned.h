// SPDX-License-Identifier: Apache-2.0
// Knows how much of a penalised fit's values the samples decide, and how much their priors.
#pragma once

#include <span>
#include <vector>

namespace orrery {

// A share of each value, 0 (the prior decides) to 1 (the samples do): the diagonal of the fit's
// hat matrix, 1 - variance of the value after the fit over that before. The shares sum to the
// effective number of parameters. `slopes` has a line for each sample, as long as `values`: by how
// much the logarithm of what is predicted moves with one deviation of each value's prior. `noise`
// is what a sample is off though all values are right. CHECKs the sizes.
std::vector<double> learned_shares(std::size_t values, std::span<const std::vector<double>> slopes,
                                   double noise);

}  // namespace orrery
