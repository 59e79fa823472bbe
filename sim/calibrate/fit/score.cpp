// SPDX-License-Identifier: Apache-2.0
// Measures how far a calibration is from measured operators: error per row and per group.
#include "sim/calibrate/fit/score.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hw_models/kernel/kernel_time.h"
#include "hw_models/kernel/l2.h"
#include "hw_models/power.h"
#include "sim/base/statistics.h"

namespace orrery {

namespace {

// Power control steps in after some 45 ms of full load: H200 products of 8,192 cubed run at 828
// TFLOP/s in replays of 30 ms and at 670 in replays of 74 ms.
constexpr double throttle_seconds = 45e-3;

double throttled(double burst, double sustained, int replays) {
  if (sustained <= burst) return burst;
  const double ratio = burst * replays / throttle_seconds;
  const double fourth = ratio * ratio * ratio * ratio;
  return burst + (sustained - burst) * fourth / (1 + fourth);
}

// With an L2 in which the row's kernel finds the share that the row found.
ResolvedDevice with_cached(const ResolvedDevice& device, const OperatorRow& row) {
  const Work& work = row.kernels[0].work;
  ResolvedDevice own = device;
  own.l2_capacity = l2_that_gives(row.cached, Bytes(work.bytes_read + work.bytes_written));
  return own;
}

}  // namespace

ResolvedDevice without_cache(const ResolvedDevice& device) {
  ResolvedDevice cold = device;
  cold.l2_bandwidth = BytesPerSecond(0);
  return cold;
}

Seconds predict(const OperatorRow& row, const ResolvedDevice& device, const ResolvedDevice& cold,
                const Calibration& calibration) {
  std::optional<ResolvedDevice> own;
  if (row.cached > 0) own = with_cached(device, row);
  const ResolvedDevice& found = own ? *own : row.cold ? cold : device;
  const double gap = calibration.kernel_gap(true).si();
  double total = 0;
  for (int i = 0; i < row.count; ++i) {
    const KernelTime t = kernel_time(row.kernels[static_cast<std::size_t>(i)], found, calibration);
    const double sustained = sustained_time(t.time, t.energy, found).si();
    total += gap + throttled(t.time.si(), sustained, row.replays);
  }
  return Seconds(total);
}

Seconds predict(const OperatorRow& row, const ResolvedDevice& device,
                const Calibration& calibration) {
  return predict(row, device, row.cold ? without_cache(device) : device, calibration);
}

Score score(const OperatorTable& table, std::span<const OperatorRow> rows,
            const ResolvedDevice& device, const Calibration& calibration) {
  Score result{.kind = table.kind,
               .format = table.format,
               .library = table.library,
               .rows = static_cast<int>(rows.size()),
               .median = 0,
               .p90 = 0};
  if (rows.empty()) return result;
  const ResolvedDevice cold = without_cache(device);
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const OperatorRow& row : rows)
    errors.push_back(std::abs(predict(row, device, cold, calibration) / row.measured - 1));
  result.median = median(errors);
  result.p90 = percentile(errors, 90);
  return result;
}

}  // namespace orrery
