// SPDX-License-Identifier: Apache-2.0
// Knows the small formulas that all kernel times share: how limits combine and waves round up.
#pragma once

#include <cmath>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "hw_models/kernel/kernel_time.h"
#include "sim/base/work.h"

namespace orrery {

// Busy time of each unit, in seconds, before they are combined.
struct UnitTimes {
  double tensor = 0, special = 0, vector = 0, memory = 0;
  double exposed = 0;      // traffic that nothing hides
  double latency = 0;      // until the first bytes arrive
  double tensor_work = 0;  // operations and bytes for the power model
  double memory_work = 0;
};

// Units work side by side but not perfectly: the eighth-power mean lies 9% above the longer of two
// equal parts and within 1% of it when one is 1.5 times the other. Monotone in every part.
inline double combine(double a, double b) {
  const double a2 = a * a, b2 = b * b;
  const double a4 = a2 * a2, b4 = b2 * b2;
  return std::sqrt(std::sqrt(std::sqrt(a4 * a4 + b4 * b4)));
}

// The next whole number, for positive values below 2^63: without SSE 4.1 std::ceil is a call.
inline double ceiling(double value) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(value));
  return whole < value ? whole + 1 : whole;
}

// Time of `units` equal pieces on `slots` processors, in pieces: at least one, the last partial
// wave counted by `exponent` between its share (0) and a whole one (1).
inline double waves(double units, double slots, double exponent) {
  const double w = units / slots;
  if (w <= 1) return 1;
  return w + exponent * (ceiling(w) - w);
}

// Peak of the tensor units for an operand format; a format that the chip lacks runs at the rate of
// the next wider one that it has (fp8 weights on an A100 are multiplied in bf16).
inline double tensor_rate(const ResolvedDevice& device, Format format) {
  const double own = device.tensor_rate[static_cast<std::size_t>(format)].si();
  if (own > 0) return own;
  constexpr Format wider[] = {Format::fp6, Format::fp8, Format::bf16, Format::fp16, Format::fp32};
  for (const Format f : wider) {
    const double rate = device.tensor_rate[static_cast<std::size_t>(f)].si();
    if (bytes_per_element(f) >= bytes_per_element(format) && rate > 0) return rate;
  }
  return device.vector_rate.si();
}

// Seconds that `bytes` take from HBM at the curve's efficiency, with the bytes that it takes to
// fill the pipes added.
inline double stream_seconds(double bytes, const Curve& curve, const ResolvedDevice& device) {
  return (bytes + curve.saturation_bytes) /
         (device.memory_bandwidth.si() * curve.memory_efficiency);
}

UnitTimes gemm_times(const Work& work, const Curve& curve, const ResolvedDevice& device);
UnitTimes grouped_gemm_times(const Work& work, const Curve& curve, const ResolvedDevice& device);
UnitTimes attention_times(const Work& work, const Curve& curve, const ResolvedDevice& device);
UnitTimes decode_times(const Work& work, const Curve& curve, const ResolvedDevice& device);
UnitTimes stream_times(const Work& work, const Curve& curve, const ResolvedDevice& device);

}  // namespace orrery
