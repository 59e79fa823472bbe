// Knows how far a calibration is from measured operators: error per row and per group.
#include "sim/calibrate/score.h"

#include <cmath>

#include "hw_models/kernel_time.h"
#include "hw_models/power.h"
#include "sim/base/statistics.h"

namespace orrery {

namespace {

// The tables replay a graph of five kernels nine times. Where that lasts some 35 ms the power
// controller has stepped in (H200 8192-cubed runs at 828 TFLOP/s in 0.66 ms kernels and at 670 in
// 1.6 ms ones): a kernel of this length is measured half way between burst and sustained.
constexpr double throttle_seconds = 1.0e-3;

double throttled(double burst, double sustained) {
  if (sustained <= burst) return burst;
  const double ratio = burst / throttle_seconds;
  const double fourth = ratio * ratio * ratio * ratio;
  return burst + (sustained - burst) * fourth / (1 + fourth);
}

}  // namespace

Seconds predict(const OperatorRow& row, const ResolvedDevice& device,
                const Calibration& calibration) {
  const double gap = calibration.graph_latency.value.value_or(Seconds(0)).si();
  double total = 0;
  for (int i = 0; i < row.count; ++i) {
    const KernelTime t = kernel_time(row.kernels[static_cast<std::size_t>(i)], device, calibration);
    total += gap + throttled(t.time.si(), sustained_time(t.time, t.energy, device).si());
  }
  return Seconds(total);
}

Score score(const OperatorTable& table, std::span<const OperatorRow> rows,
            const ResolvedDevice& device, const Calibration& calibration) {
  Score result{.kind = table.kind, .format = table.format, .library = table.library,
               .rows = static_cast<int>(rows.size()), .median = 0, .p90 = 0};
  if (rows.empty()) return result;
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const OperatorRow& row : rows)
    errors.push_back(std::abs(predict(row, device, calibration) / row.measured - 1));
  result.median = median(errors);
  result.p90 = percentile(errors, 90);
  return result;
}

}  // namespace orrery
