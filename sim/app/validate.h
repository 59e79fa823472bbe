// Knows the command that holds predictions against measured runs.
#pragma once

#include <string>
#include <vector>

namespace orrery {

struct ValidateOptions {
  std::vector<std::string> files;  // empty: the tables of validation/measurements
  // "source", "model" or "release": values are fitted without each group in turn.
  std::string leave_out;
  bool fit = false;  // prints step-level values fitted per stack
  bool json = false;
  bool rows = false;     // a line for every row
  bool regions = false;  // small, medium and large kernels apart
  bool kernels = false;  // of the shipped measurements only single kernels
  bool quiet = false;    // no progress on stderr
  int threads = 0;       // 0: all cores
};

// Predicts every row of the tables and prints how far predictions are from measurements. Returns
// the exit code. Errors: a table of a kind that is not supported, a missing column, a cell that
// does not parse.
int validate_command(const ValidateOptions& options);

}  // namespace orrery
