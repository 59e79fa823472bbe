// SPDX-License-Identifier: Apache-2.0
// Measures how far a calibration is from measured operators: error per row and per group.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/log/measurement.h"

namespace orrery {

// Seconds that the model expects a measured row to take: its kernels one after the other inside a
// CUDA graph, slowed towards the sustained rate where the replay is long enough to throttle.
Seconds predict(const OperatorRow& row, const ResolvedDevice& device,
                const Calibration& calibration);

// The same with the device without its cache made once: see without_cache.
Seconds predict(const OperatorRow& row, const ResolvedDevice& device, const ResolvedDevice& cold,
                const Calibration& calibration);

// The device as operands find it that are not in its L2.
ResolvedDevice without_cache(const ResolvedDevice& device);

// Below this start and end of a kernel decide its time, above it its rate.
inline constexpr double short_kernel = 20e-6;  // seconds

// Absolute relative errors of a set of rows.
struct Score {
  WorkKind kind = WorkKind::gemm;
  Format format = Format::bf16;
  Library library = Library::cublas;
  int rows = 0;
  double median = 0, p90 = 0;
};

Score score(const OperatorTable& table, std::span<const OperatorRow> rows,
            const ResolvedDevice& device, const Calibration& calibration);

}  // namespace orrery
