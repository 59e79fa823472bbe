// SPDX-License-Identifier: Apache-2.0
// Tests the random streams against published vectors, and that threads cannot change a draw.
#include "sim/base/random.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "sim/base/parallel.h"

namespace orrery {
namespace {

TEST_CASE("Philox4x32-10 gives the known answers of Random123") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  CHECK(RandomStream(0, 0).bits(0) == 0xe169c58d6627e8d5);
}

TEST_CASE("seed, stream and number are all that a draw depends on") {
  RandomStream stream(7, 3);
  for (std::uint64_t n = 0; n < 100; ++n) CHECK(stream.next() == RandomStream(7, 3).bits(n));
  CHECK(RandomStream(7, 3).bits(5) != RandomStream(7, 4).bits(5));
  CHECK(RandomStream(7, 3).bits(5) != RandomStream(8, 3).bits(5));
  CHECK(RandomStream(7, std::uint64_t{1} << 40U).bits(0) != RandomStream(7, 0).bits(0));
  CHECK(RandomStream(7, 0).bits(std::uint64_t{1} << 40U) != RandomStream(7, 0).bits(0));
}

TEST_CASE("any number of threads draws the same values") {
  constexpr std::size_t streams = 2000;
  const auto draw = [](int threads) {
    std::vector<double> values(streams);
    parallel_for(streams, threads, [&](std::size_t i) {
      RandomStream stream(42, i);
      values[i] =
          stream.normal(0, 1) + stream.exponential(2) + static_cast<double>(stream.below(1000));
    });
    return values;
  };
  const std::vector<double> alone = draw(1);
  for (const int threads : {2, 3, 8, 0}) CHECK(draw(threads) == alone);
}

TEST_CASE("draws have the moments of their distributions") {
  constexpr int draws = 200000;
  RandomStream stream(1, 0);
  double uniform = 0, exponential = 0, normal = 0, square = 0;
  for (int i = 0; i < draws; ++i) {
    const double u = stream.uniform();
    REQUIRE((u >= 0 && u < 1));
    uniform += u;
    const double e = stream.exponential(3);
    REQUIRE((e >= 0 && std::isfinite(e)));
    exponential += e;
    const double x = stream.normal(5, 2);
    normal += x;
    square += (x - 5) * (x - 5);
  }
  // Five standard errors of each mean.
  const double root = std::sqrt(static_cast<double>(draws));
  CHECK(std::abs(uniform / draws - 0.5) < 5 * std::sqrt(1.0 / 12) / root);
  CHECK(std::abs(exponential / draws - 3) < 5 * 3 / root);
  CHECK(std::abs(normal / draws - 5) < 5 * 2 / root);
  CHECK(std::abs(square / draws - 4) < 5 * 4 * std::sqrt(2.0) / root);
}

TEST_CASE("numbers below a bound are all equally likely") {
  RandomStream stream(2, 0);
  std::vector<int> count(7);
  constexpr int draws = 70000;
  for (int i = 0; i < draws; ++i) ++count.at(stream.below(7));
  double chi_square = 0;
  for (const int c : count) chi_square += (c - 10000.0) * (c - 10000.0) / 10000.0;
  CHECK(chi_square < 22.5);  // 99.9% quantile for six degrees of freedom
  CHECK(stream.below(1) == 0);
  const std::uint64_t large = (std::uint64_t{1} << 63U) + 1;
  for (int i = 0; i < 100; ++i) CHECK(stream.below(large) < large);
}

}  // namespace
}  // namespace orrery
