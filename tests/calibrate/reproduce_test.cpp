// SPDX-License-Identifier: Apache-2.0
// Tests that a repeat on another machine gives the committed calibration within its stated ranges.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/base/statistics.h"
#include "sim/calibrate/fit/fit.h"
#include "sim/calibrate/fit/score.h"
#include "sim/calibrate/log/measured_tables.h"

namespace orrery {
namespace {

TEST_CASE("each full run of an H200 by itself gives the committed curves within their ranges") {
  const Device device = load_device("h200-sxm");
  const ResolvedDevice resolved = device.resolved();
  const Calibration committed = load_calibration(device);
  for (const char* run : {"run-1", "run-3"}) {
    const MeasuredLog log =
        read_measured_log({data_root() / "hw_models/calibration/h200-sxm/measured" / run});
    const FitReport alone = fit_log(device, log, {.max_rows = 400, .starts = 3, .refits = 0});
    Calibration repeated = committed;
    for (const Curve& curve : alone.calibration.curves) put_curve(repeated, curve);
    complete(repeated);
    int checked = 0;
    for (const OperatorTable& table : measured_tables(log)) {
      if (!table.variant.empty() || table.rows.size() < 40) continue;
      const Curve& curve = committed.curve(table.kind, table.format, table.library);
      if (!curve.scale.low || !curve.scale.high || curve.library != table.library) continue;
      std::vector<double> ratios;
      for (const OperatorRow& row : table.rows)
        ratios.push_back(predict(row, resolved, repeated) / predict(row, resolved, committed));
      INFO(run << " " << Calibration::name(curve));
      CHECK(median(ratios) > *curve.scale.low);
      CHECK(median(ratios) < *curve.scale.high);
      ++checked;
    }
    CHECK(checked >= 8);
  }
}

}  // namespace
}  // namespace orrery
