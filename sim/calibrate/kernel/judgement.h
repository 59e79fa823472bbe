// SPDX-License-Identifier: Apache-2.0
// Knows what a candidate is worth as a kernel: right or wrong, how fast against what there is and
// against what can be, a reward, and a paragraph to act on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "sim/calibrate/kernel/trial.h"

namespace orrery {

// A kernel of today, timed by the same judge.
struct PresentTimes {
  std::string name, failure;
  std::vector<KernelTiming> timed;
};

// The device that candidates ran on, of the catalogue.
struct KernelMachine {
  ResolvedDevice device;
  Calibration calibration;
};

// One timed shape.
struct ShapeJudgement {
  Sizes shape;
  double cold = 0, low = 0, high = 0, warm = 0;  // medians; quartiles of cold
  double mhz = 0;
  std::optional<KernelLimit> limit;  // of the device's peaks
  std::optional<double> calibrated;  // what its calibration predicts for today's kernel
  std::optional<double> present;     // the fastest of today, and its quartiles
  double present_low = 0, present_high = 0;
  std::string present_name;
};

struct KernelSpeed {
  double middle = 0, low = 0, high = 0;  // times as fast as today
};

struct KernelJudgement {
  std::string file;
  bool compiled = false, correct = false;
  BuiltKernel built;
  KernelTrial trial;
  std::string wrong;  // why it is not correct; empty where it is, or where it never ran
  std::vector<ShapeJudgement> shapes;
  std::optional<double> time, warm, of_roofline;  // geometric means over shapes
  std::optional<KernelSpeed> speed;
  double reward = 0;
  std::string feedback;
};

// Spec and trial are of one candidate; `machine` null: the catalogue has none.
KernelJudgement judge_kernel(const KernelSpec& spec, const std::string& file,
                             const BuiltKernel& built, const KernelTrial& trial,
                             const std::vector<PresentTimes>& present,
                             const KernelMachine* machine);

// 0 unless it is right; else s / (1 + s), s: how many times as fast as today, by the slower
// quartile of the candidate. It rises with s, from 0 to 1, and is a half where both are as fast.
double kernel_reward(bool correct, double speed);

}  // namespace orrery
