// SPDX-License-Identifier: Apache-2.0
// Knows how long one kernel takes on one device, alone and at burst clocks.
#pragma once

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/base/units/units.h"
#include "sim/base/work.h"

namespace orrery {

// The unit that limits a kernel.
enum class Limit : std::uint8_t {
  tensor,
  vector,
  special_function,
  memory,  // or the L2, while what moves is small
  latency,
  host_link
};
std::string_view to_text(Limit);

struct KernelTime {
  Seconds time;  // from first block to last, without launch cost
  Seconds body;  // the part of it in which units work: without starts and the first wait for memory
  Limit limit = Limit::tensor;
  Joules energy;  // dynamic energy (above idle), for the power model
  // The part of it that goes with the clock: tensor work, and of products whose tiles are known
  // also what they stream. 0: tensor work is not the larger part.
  Joules tensor;
};

// Roofline of the limiting unit times the fitted efficiency, plus the curve's fixed time. GEMM
// knows tiles, waves (quantisation to the SM count), split-k for skinny shapes and weight streaming
// for small m. Under 100 ns on average (bench_kernel_time: llama_405b). Monotone: more rate or
// bandwidth is never slower (law 7).
KernelTime kernel_time(const Kernel& kernel, const ResolvedDevice& device,
                       const Calibration& calibration);

}  // namespace orrery
