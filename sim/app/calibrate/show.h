// SPDX-License-Identifier: Apache-2.0
// Knows what a calibration says to people: tables of its curves, and pictures of what was measured.
#pragma once

#include <string>
#include <vector>

#include "sim/app/calibrate/command.h"
#include "sim/calibrate/health/expected_time.h"
#include "sim/calibrate/log/measured_log.h"
#include "sim/paper/plot.h"

namespace orrery {

// The tables; with a folder for plots also writes plots of measured and fitted curves there.
Printed show_command(const CalibrateOptions& options);

// A page of plots: file name without ending, heading, and its plots.
struct PlotPage {
  std::string name, heading;
  std::vector<Plot> plots;
};

// Pages for everything that the samples tell: products, copies, attention, decode, collectives,
// power, and predicted over measured by kind. Held-out samples are hollow. Plots without points are
// left out.
std::vector<PlotPage> calibration_plots(const MeasuredLog& log, const Machine& machine);

}  // namespace orrery
