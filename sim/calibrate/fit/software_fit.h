// SPDX-License-Identifier: Apache-2.0
// Knows what a plain-PyTorch stack costs, from the samples of the framework program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/log/measured_log.h"
#include "workloads/stack/values.h"

namespace orrery {

// The catalogue's stack of the framework program: what its samples measure anew.
inline constexpr const char* measured_stack = "pytorch";

// One value of a stack (visit_stack_values names it). Times in seconds, sizes in bytes.
struct SoftwareValue {
  std::string name;          // "operations.layer_forward"
  double value = 0;          // median over samples
  double low = 0, high = 0;  // least and most of samples and of their repeats
  int samples = 0;
  std::string reason;  // one sentence: how it follows from the samples
};

struct SoftwareFit {
  std::vector<SoftwareValue> values;  // in the order of visit_stack_values; only what was measured
  std::optional<Library> attention;   // what PyTorch takes by itself in training
  std::string torch, date;            // version and day of the run; empty where unknown
  const SoftwareValue* find(const std::string& name) const;
};

// Reads samples of kind "software" and those of eager cross-entropy; what was not measured stays
// absent. Traffic of fused kernels is what `calibration` needs to explain the measured time of a
// whole layer on `device`, so that the two belong together. `base`: the stack that the rest of a
// layer follows. Deterministic. Error for samples that lack the numbers of their variant.
SoftwareFit fit_software(const MeasuredLog& log, const ResolvedDevice& device,
                         const Calibration& calibration, const Stack& base);

// A stack file that lays the values over the catalogue's "pytorch", for --stack PATH: evidence
// measured, source `source`.
std::string stack_overlay_json(const SoftwareFit& fit, const std::string& source);

// One line for each value, for people.
std::string software_text(const SoftwareFit& fit);

}  // namespace orrery
