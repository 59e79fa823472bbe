// SPDX-License-Identifier: Apache-2.0
// Knows what work costs in energy, from board power that was measured while it ran for seconds.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/log/measured_log.h"

namespace orrery {

// A fitted number in SI units with its standard error, or where several runs each tell it, what a
// run differs by if that is more; n is the number of samples that it rests on, 0 where the samples
// do not tell it.
struct FittedValue {
  double value = 0, error = 0;
  int n = 0;
  bool known() const { return n > 0; }
};

struct PowerRow {
  std::string variant;  // "gemm 8192-cube fp8", "copy"
  Watts measured, predicted;
  Watts held_out;       // predicted by a fit without this sample; 0 where that fit cannot
  bool fitted = false;  // false: outside the model, shown for comparison
};

struct PowerFit {
  std::array<FittedValue, format_count> tensor_energy;  // J/FLOP
  FittedValue memory_energy;                            // J/B
  FittedValue busy_share;      // of the limit less idle power, as Calibration has it
  FittedValue idle_power;      // W, the mean of the samples at rest
  int runs = 0;                // of programs that measured, a board each as far as is known
  int held_out = 0;            // rows with a prediction that never saw them
  double median = 0, p90 = 0;  // |predicted / measured - 1| of board power, of those rows
  std::vector<PowerRow> rows;
};

// Non-negative least squares of the energy model of hw_models/kernel/kernel_time.h on "power"
// samples and sustained products: power over idle = max(FLOP/s * J/FLOP, busy power) + B/s * J/B,
// each sample by its share of the measured power. Idle is the device's, because predictions add
// that one. Sustained products of other programs are fitted only in formats that no "power" sample
// asks about; the others check the fit. Two more kinds of samples are predicted, not fitted: those
// of which part of the processors waits
// ("occupied": 0), and those that move nothing, whose registers soon hold constants: they draw a
// half to two thirds of what the same instructions draw on data that change, and no layer has such
// kernels. Error when no sample can be fitted or the device has no power limit.
PowerFit fit_power(const MeasuredLog& log, const ResolvedDevice& device);

// Writes the known values into the calibration as measured, with ranges of two standard errors.
void put(const PowerFit& fit, Calibration& calibration, const std::string& source);

}  // namespace orrery
