// SPDX-License-Identifier: Apache-2.0
// Knows the calibrate command: measuring a GPU, curves fitted to it, what they are, is it healthy.
#pragma once

#include <string>
#include <vector>

#include "sim/app/answer/answer.h"
#include "sim/app/line/command.h"

namespace orrery {

struct CalibrateOptions {
  std::string action;              // measure, fit, show or compare
  std::string device;              // accelerator of the catalogue
  std::vector<std::string> files;  // fit: tables or measured lines; compare: the two sides
  std::string based_on;            // calibration whose curves stand where no table was given
  std::string output;              // calibration file to write (fit); "": only the report
  std::string stack_output;        // overlay of a software stack to write (fit)
  std::string plots;               // folder for pictures (show)
  bool json = false;
};

// fit: fits the device's curves to tables or to measured lines, prints the error on what was kept
// out. show: prints a calibration with its evidence and errors, draws it. compare: holds a
// measurement or a calibration against another; the exit code is 1 when it finds a GPU suspect.
Printed run_calibrate(const CalibrateOptions& options);

Command calibrate_command();

// Becomes the script of validation/microbench with these arguments; returns only as an Error, where
// the script is not there.
[[noreturn]] void calibrate_measure(const std::vector<std::string>& arguments);

// What an answer for machines says it was asked. Measured lines are named: they are too many to
// stand there.
AnswerHead calibrate_head(const CalibrateOptions& options);

}  // namespace orrery
