// SPDX-License-Identifier: Apache-2.0
// Knows Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011) and the distributions drawn from it.
#include "sim/base/random.h"

#include <cmath>
#include <numbers>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); }

}  // namespace

PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  // Multipliers and Weyl increments of the paper's table 2 and section 4.3.
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {high(second) ^ counter[1] ^ key[0], low(second), high(first) ^ counter[3] ^ key[1],
               low(first)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

std::uint64_t RandomStream::bits(std::uint64_t n) const {
  const PhiloxBlock block =
      philox4x32({low(n), high(n), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  return std::uint64_t{block[1]} << 32U | block[0];
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  CHECK_THAT(bound > 0, "no number is below zero");
  // Lemire, "Fast random integer generation in an interval" (2019): a product's high half, with
  // the few low halves rejected that would favour some results.
  const std::uint64_t rejected = (0 - bound) % bound;
  while (true) {
    const auto product = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<std::uint64_t>(product) >= rejected)
      return static_cast<std::uint64_t>(product >> 64U);
  }
}

double RandomStream::exponential(double mean) { return -mean * std::log1p(-uniform()); }

double RandomStream::normal(double mean, double deviation) {
  // Box and Muller (1958). The sine's value is dropped: a draw then takes two counters always.
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return mean + deviation * radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace orrery
