// Knows how to fit a device's efficiency curves to measured operators, keeping some rows unseen.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hw_models/calibration.h"
#include "hw_models/device.h"
#include "sim/calibrate/measurement.h"

namespace orrery {

// One fitted curve: how many rows it was fitted on, and its error on the rows kept out.
struct FitRow {
  WorkKind kind = WorkKind::gemm;
  Format format = Format::bf16;
  Library library = Library::cublas;
  int n_fit = 0, n_held = 0;
  double median = 0, p90 = 0;  // |predicted / measured - 1| on the rows kept out
  std::string note;            // rows left out, parameters held fixed
};

struct FitReport {
  std::string device;
  std::vector<FitRow> rows;
  Calibration calibration;  // fitted curves only
  std::string json;         // text of a calibration file
};

struct FitOptions {
  std::string based_on;  // name of a calibration whose curves stand where no table was given
  int max_rows = 2500;   // rows that one fit looks at; a larger table is thinned evenly
  int iterations = 400;  // of the simplex, from each of its starts
  int starts = 9;
};

// Fits every table of this device; `start` gives the curves that the tables do not measure
// (quantise, element-wise) and the energies to begin from. Deterministic.
FitReport fit_tables(const ResolvedDevice& device, const Calibration& start,
                     const std::vector<OperatorTable>& tables, const FitOptions& options);

// Reads the tables by path, loads the device and its architecture's estimates, and fits. Error when
// a file belongs to another device.
FitReport fit_device(const std::string& device, const std::vector<std::filesystem::path>& files,
                     const FitOptions& options = {});

// Least value of `cost` over a box, by the simplex of Nelder and Mead (1965) in the logit of each
// coordinate. Returns the best point.
std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& cost,
                             const std::vector<double>& low, const std::vector<double>& high,
                             std::vector<double> start, int iterations);

}  // namespace orrery
