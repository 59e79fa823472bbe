// SPDX-License-Identifier: Apache-2.0
// Knows how to fit a device's efficiency curves to measurements, keeping whole shapes unseen.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/fit/collective_fit.h"
#include "sim/calibrate/fit/launch_fit.h"
#include "sim/calibrate/fit/overlap_fit.h"
#include "sim/calibrate/fit/power_fit.h"
#include "sim/calibrate/fit/run_spread.h"
#include "sim/calibrate/log/measured_log.h"
#include "sim/calibrate/log/measurement.h"

namespace orrery {

// |predicted / measured - 1| of some rows: "over 20 us", "m under 128".
struct RegionError {
  std::string name;
  int rows = 0;
  double median = 0, p90 = 0;
};

// One fitted curve: how many rows it was fitted on, and its error on the rows kept out.
struct FitRow {
  WorkKind kind = WorkKind::gemm;
  Format format = Format::bf16;
  Library library = Library::cublas;
  std::string variant;  // one kernel of the kind; empty: all of them by one curve
  int n_fit = 0, n_held = 0;
  double median = 0, p90 = 0;  // of the rows kept out
  RegionError over, under;     // of them: kernels over and under 20 us
  // Of all rows, each predicted by a fit of four fifths of the families without its own.
  double cross_validated = 0, cross_validated_p90 = 0;
  std::vector<RegionError> regions;  // the same by m for products, by keys or bytes for others
  double spread = 0;                 // median relative standard error of a prediction, from refits
  RunSpread runs;                    // how much equal shapes differ from run to run
  double per_octave = 0;  // growth of the relative error with each octave beyond what was fitted
  std::string note;       // rows left out, parameters held fixed
};

// Sustained samples, which no fit saw, against the power model.
struct SustainedRow {
  WorkKind kind = WorkKind::gemm;
  Format format = Format::bf16;
  Library library = Library::cublas;
  int rows = 0;
  double median = 0, p90 = 0;
};

struct FitReport {
  std::string device;
  std::vector<FitRow> rows;
  std::vector<SustainedRow> sustained;
  LaunchFit launches;  // these only from samples; empty where the log does not tell
  PowerFit power;
  CollectiveFit collectives;
  std::vector<OverlapCost> overlaps;
  Calibration calibration;  // fitted curves only, and what launches and energies were measured
  std::string json;         // text of a calibration file
};

struct FitOptions {
  std::string based_on;  // name of a calibration whose curves stand where no table was given
  int max_rows = 2500;   // rows that one fit looks at; a larger table is thinned evenly
  int starts = 8;        // of each fit
  int refits = 20;       // on families drawn with replacement: standard errors
  int threads = 0;       // 0: all cores; the answer does not depend on it
};

// Fits every table of this device; `start` gives the curves that the tables do not measure
// (quantise, element-wise) and the energies to begin from. Deterministic.
FitReport fit_tables(const ResolvedDevice& device, const Calibration& start,
                     const std::vector<OperatorTable>& tables, const FitOptions& options);

// Fits curves, launches, energies and collectives to the samples of one device's microbenchmarks.
FitReport fit_log(const Device& device, const MeasuredLog& log, const FitOptions& options = {});

// Reads operator tables (*.csv) or samples (*.jsonl, folders of them) and fits. `device` may be
// empty for samples: they name theirs. Error when a file belongs to another device, and when tables
// and samples are mixed: they make two files of a calibration.
FitReport fit_device(const std::string& device, const std::vector<std::filesystem::path>& files,
                     const FitOptions& options = {});

}  // namespace orrery
