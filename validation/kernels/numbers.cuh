// SPDX-License-Identifier: Apache-2.0
// Knows 16-bit and 8-bit floating point by its bits, on host and device, and numbers drawn from a
// seed by place.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define BOTH __host__ __device__ inline
#else
#define BOTH inline
#endif

BOTH float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
BOTH std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

BOTH float bf16_value(std::uint16_t bits) { return float_of(std::uint32_t{bits} << 16); }
// To the nearest, ties to even.
BOTH std::uint16_t bf16_bits(float value) {
  const std::uint32_t bits = bits_of(value);
  if (value != value) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A value rounded to `digits` binary digits, of which the smallest exponent is `least`.
BOTH float rounded(float value, int digits, int least) {
  if (value == 0 || value != value || fabsf(value) > 3e38f) return value;
  int exponent;
  frexpf(value, &exponent);
  const int unit = (exponent > least ? exponent : least) - digits;
  return ldexpf(rintf(ldexpf(value, -unit)), unit);
}
BOTH float half_rounded(float value) {
  const float to = rounded(value, 11, -13);
  return fabsf(to) > 65504.0f ? copysignf(INFINITY, to) : to;
}

constexpr float fp8_most = 448;  // of e4m3
// e4m3: 4 bits of exponent (bias 7), 3 of fraction, no infinities; all ones is no number.
BOTH float fp8_value(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15, fraction = bits & 7;
  if ((bits & 127) == 127) return NAN;
  const float size = exponent == 0 ? ldexpf(static_cast<float>(fraction), -9)
                                   : ldexpf(static_cast<float>(8 + fraction), exponent - 10);
  return bits & 128 ? -size : size;
}
BOTH std::uint8_t fp8_bits(float value) {
  const std::uint8_t sign = value < 0 ? 128 : 0;
  const float size = rounded(fabsf(value), 4, -5);
  if (!(size < fp8_most)) return static_cast<std::uint8_t>(sign | 126);
  if (size < 0.015625f) return static_cast<std::uint8_t>(sign | static_cast<int>(size * 512));
  int exponent;
  const float part = frexpf(size, &exponent);
  return static_cast<std::uint8_t>(sign | ((exponent + 6) << 3) |
                                   (static_cast<int>(part * 16) - 8));
}

// Of one place in one stream; Steele, Lea and Flood's SplitMix64 finisher.
BOTH std::uint64_t drawn(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t x = seed + (place + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
BOTH double share_of(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
// Nearly normal, of mean 0 and deviation 1: four uniform numbers added up.
BOTH float normal_of(std::uint64_t bits) {
  const int sum = static_cast<int>(bits & 0xffff) + static_cast<int>((bits >> 16) & 0xffff) +
                  static_cast<int>((bits >> 32) & 0xffff) + static_cast<int>(bits >> 48);
  return static_cast<float>(sum - 131070) * (1.7320508f / 65536.0f);
}
