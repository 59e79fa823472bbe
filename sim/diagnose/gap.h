// SPDX-License-Identifier: Apache-2.0
// Knows where the time goes by which a run is longer than predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diagnose/observed/observations.h"

namespace orrery {

// A part of the gap, in seconds of the mean step; below 0 where the run is faster there.
struct GapPart {
  std::string key;    // "products", "host", ...
  std::string title;  // "matrix products slower than predicted"
  double seconds = 0;
};

// The mean step against the predicted one. Parts add up to the gap; the last is what no file
// explains.
struct Gap {
  double predicted_s = 0, measured_s = 0;  // mean step: usual ones and slow ones
  double usual_s = 0;
  double bubble_s = 0;                // of a pipeline, as predicted
  std::optional<double> exchanged_s;  // measured in sends and receives, which hold the bubble
  std::vector<GapPart> parts;
  double seconds() const { return measured_s - predicted_s; }
};

// Kernels are those of the rank that others wait for; where only one was profiled, of that.
// `exchanged`: exchanged_of(); then the state's exposed communication holds the bubble.
Gap gap_of(const RunState& healthy, const Readings& readings,
           std::optional<double> exchanged = std::nullopt);

}  // namespace orrery
