// SPDX-License-Identifier: Apache-2.0
// Knows counter-based random streams: the n-th draw of a stream depends on seed, stream and n only.
#pragma once

#include <array>
#include <cstdint>

namespace orrery {

// One block of Philox4x32-10: a bijection of the counter, chosen by the key.
using PhiloxBlock = std::array<std::uint32_t, 4>;
PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

// Philox4x32-10 (Salmon et al., SC 2011). Copies continue independently; any thread may draw the
// n-th value of any stream in any order with the same result (law 6).
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  std::uint64_t bits(std::uint64_t n) const;  // n-th 64 random bits
  std::uint64_t next() { return bits(counter_++); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  std::uint64_t below(std::uint64_t bound);  // [0, bound), unbiased, bound > 0
  double exponential(double mean);
  double normal(double mean, double deviation);

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
};

}  // namespace orrery
