// SPDX-License-Identifier: Apache-2.0
// Holds the reference loop of every bench program: fixed work, in whose time others are counted.
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace {

// Whole numbers, floating point and loads that hit the second cache, a third of the time each: what
// a prediction does. A quarter of a millisecond or so. It must not be changed: the baseline counts
// in it.
void reference(benchmark::State& state) {
  static std::array<std::uint32_t, 1 << 16> table;
  std::uint32_t random = 1;
  const auto next = [&random] {
    random ^= random << 13U;
    random ^= random >> 17U;
    random ^= random << 5U;
    return random;
  };
  for (std::uint32_t& place : table) place = next() % table.size();
  for (auto _ : state) {
    std::uint32_t at = next() % table.size();
    double sum = 0;
    for (int i = 0; i < 20000; ++i) {
      at = table[at] ^ (next() & 1U);
      sum = std::sqrt(sum + static_cast<double>(at)) / 1.5;
    }
    benchmark::DoNotOptimize(at);
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(reference)->Unit(benchmark::kMicrosecond);

}  // namespace
