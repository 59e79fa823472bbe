// SPDX-License-Identifier: Apache-2.0
// Knows how the constants of a collective library are fitted to measured calls inside one domain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/calibrate/fit/least_squares.h"
#include "sim/calibrate/log/measured_log.h"
#include "sim/engine/collective_costs.h"

namespace orrery {

// One fitted number of a file of collective constants.
struct CollectiveConstant {
  std::string path;     // "kinds.broadcast.ring.ll.base"
  double value = 0;     // in SI units: seconds, bytes, B/s; a share
  double start = 0;     // the generation's; 0: it has none
  double error = 0;     // standard error, from refits on rows drawn with replacement
  std::string written;  // as a catalogue writes it: "4.12 us"
};

// How far the fit is from measured calls: |predicted / measured - 1|.
struct CollectiveErrors {
  CollectiveKind kind = CollectiveKind::all_reduce;
  bool large = false;   // from 1 MiB on
  bool forced = false;  // the protocol was forced; else NCCL chose
  int fitted = 0, held_out = 0;
  double fit_median = 0;                     // of the fitted rows
  double median = 0, p90 = 0;                // of the rows kept out
  double before_median = 0, before_p90 = 0;  // of the same by the generation's constants
};

struct CollectiveFit {
  std::string source;                         // id in hw_models/catalog/sources
  std::vector<CollectiveConstant> constants;  // in the order of their paths
  std::vector<CollectiveErrors> errors;
  CollectiveCosts costs;  // the generation's, with the fitted constants
  std::int64_t least_ranks = 0, most_ranks = 0;
  double least_bytes = 0, most_bytes = 0;  // of the fitted rows
};

struct CollectiveFitOptions {
  std::string source = "orrery-microbenchmarks";
  LeastSquaresOptions search = {.starts = 8};
};

// Fits what the log's collectives inside graphs can tell of `device` (catalogue name): each kind
// that has rows of NCCL, by itself, from the generation's constants. Rows of is_held_out are never
// fitted. No such rows: an empty fit. Error for an unknown device.
CollectiveFit fit_collectives(const MeasuredLog& log, const std::string& device,
                              const CollectiveFitOptions& options = {});

// The section "collectives" of hw_models/calibration/<device>/fit.json: only what the fit changed,
// in the keys of hw_models/calibration/collectives. Null where nothing was fitted.
SortedJson collectives_section(const CollectiveFit& fit);

// One line per kind and size region, for people.
std::string errors_text(const CollectiveFit& fit);

}  // namespace orrery
