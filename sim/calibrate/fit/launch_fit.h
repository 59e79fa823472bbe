// SPDX-License-Identifier: Apache-2.0
// Knows what launches and links cost, fitted to the samples of the launch and link programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/fit/least_squares.h"
#include "sim/calibrate/log/measured_log.h"

namespace orrery {

// How a cost predicts rows that it was not fitted on: each group of rows that are alike (the same
// chain length, parameters and body; the same octave of bytes) by a fit of all others.
struct LeftOutError {
  int rows = 0;
  double median = 0, p90 = 0;  // |predicted / measured - 1|
};

// A number with its standard error, from refits on groups drawn with replacement; where the log
// holds several runs, what one of them differs by if that is more.
struct Fitted {
  double value = 0, error = 0;
};

// Time of one of `n` launches in a row: each + per_parameter * parameters + once / n, next to the
// kernel's own body. Of graph launches by the host: of one node, and once a launch.
struct LaunchCost {
  Fitted each, per_parameter, once;  // seconds
  LeftOutError error;
  // With this many 8-byte parameters.
  double seconds(double parameters) const { return each.value + per_parameter.value * parameters; }
};

// Time of one copy: bytes / (efficiency * the link's bandwidth) + fixed.
struct LinkCost {
  Fitted efficiency, fixed;  // share, seconds
  double bandwidth = 0;      // B/s of the link, from the catalogue
  double least_bytes = 0, most_bytes = 0;
  LeftOutError error;
};

struct LaunchFit {
  // Device: gap between dependent kernels of a stream, and between nodes of a graph. Host: of one
  // launch call; of launching a graph.
  std::optional<LaunchCost> stream, graph, host, graph_host;
  std::optional<LinkCost> to_device, to_host;  // pinned memory, one direction at a time
  std::optional<LinkCost> host_link;           // the two as one: what a host copy costs
  std::optional<LinkCost> peer, peer_read;     // copy engines; a kernel that reads its peer
  // Share of the two directions' rates that is lost when both run, over copies from 16 MiB on
  // (median); absent where there are none.
  std::optional<double> host_both_loss, peer_both_loss;
  std::string source;  // id of the measurement
};

// Fits what there is; the rest stays absent. Deterministic. A link without bandwidth in the
// catalogue is not fitted. Error for samples without the numbers of README.md's table.
LaunchFit fit_launches(const MeasuredLog& log, const ResolvedDevice& device);

// Sets the gaps of streams and graphs (of kernels with eight parameters) and the curve of host
// copies, each where it was measured.
void put(const LaunchFit& fit, Calibration& calibration);

// One line for each cost, for people.
std::string launches_text(const LaunchFit& fit);

}  // namespace orrery
