// Knows the calibrate command: curves fitted to operator tables, and how good they are.
#pragma once

#include <string>
#include <vector>

namespace orrery {

struct CalibrateOptions {
  std::string action;              // fit or show
  std::string device;              // accelerator of the catalogue
  std::vector<std::string> files;  // operator tables (fit)
  std::string based_on;            // calibration whose curves stand where no table was given
  std::string output;              // calibration file to write (fit); "": only the report
};

// fit: fits the device's curves to the tables, prints the error on the rows kept out of the fit.
// show: prints the curves of a device's calibration with their evidence and held-out errors.
// Returns the text to print.
std::string calibrate_report(const CalibrateOptions& options, bool json);

}  // namespace orrery
