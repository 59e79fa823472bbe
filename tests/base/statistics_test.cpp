// SPDX-License-Identifier: Apache-2.0
// Tests the statistics on values worked by hand.
#include "sim/base/statistics.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

namespace orrery {
namespace {

using Values = std::vector<double>;

TEST_CASE("a sample's deviation counts one value less, and none is told by one value") {
  const std::vector<double> values = {1, 2, 3, 6};
  CHECK(sample_deviation(values) == Approx(std::sqrt(14.0 / 3)));
  CHECK(sample_deviation(std::vector<double>{5}) == 0);
}

TEST_CASE("percentiles interpolate between the sorted values") {
  const Values values = {40, 10, 30, 20};
  CHECK(percentile(values, 0) == 10);
  CHECK(percentile(values, 100) == 40);
  CHECK(percentile(values, 50) == 25);
  CHECK(percentile(values, 90) == Approx(37));
  CHECK(median(values) == 25);
  CHECK(median(Values{3, 1, 2}) == 2);
  CHECK(percentile(Values{7}, 33) == 7);
  CHECK(mean(values) == 25);
}

TEST_CASE("rank correlation sees order only") {
  CHECK(rank_correlation(Values{1, 2, 3, 4}, Values{1, 10, 100, 1000}) == Approx(1));
  CHECK(rank_correlation(Values{1, 2, 3, 4}, Values{4, 3, 2, 1}) == Approx(-1));
  // Spearman's formula 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 1, 1, 1, 1, 0.
  CHECK(rank_correlation(Values{1, 2, 3, 4, 5}, Values{2, 1, 4, 3, 5}) == Approx(0.8));
  // Ties share the mean rank: ranks 1.5, 1.5, 3 against 1, 2, 3.
  CHECK(rank_correlation(Values{5, 5, 9}, Values{1, 2, 3}) == Approx(1.5 / std::sqrt(3.0)));
  CHECK(rank_correlation(Values{1}, Values{2}) == 0);
  CHECK(rank_correlation(Values{}, Values{}) == 0);
  CHECK(rank_correlation(Values{3, 3, 3}, Values{1, 2, 3}) == 0);
}

TEST_CASE("constants of the normal distribution are its own") {
  CHECK(std::erf(normal_95 / std::sqrt(2.0)) == Approx(0.9).epsilon(1e-7));
  // Half of it lies within one median absolute deviation.
  CHECK(std::erf(1 / deviation_of_mad / std::sqrt(2.0)) == Approx(0.5).epsilon(1e-4));
}

}  // namespace

TEST_CASE("the logarithm of a factorial") {
  CHECK(log_factorial(0) == Approx(0).margin(1e-12));
  CHECK(log_factorial(5) == Approx(std::log(120.0)));
  CHECK(log_factorial(1000) - log_factorial(999) == Approx(std::log(1000.0)));
}

}  // namespace orrery
