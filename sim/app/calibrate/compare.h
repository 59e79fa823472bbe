// SPDX-License-Identifier: Apache-2.0
// Knows the question whether a GPU is healthy: a measurement or calibration held against another.
#pragma once

#include <string>

#include "sim/app/calibrate/command.h"
#include "sim/calibrate/health/health.h"

namespace orrery {

// Two of: a measured folder or *.jsonl, a calibration file, a device of the catalogue; the second
// may be the word "specification". A measurement alone is held against the committed calibration of
// its device, a calibration alone against the specification. A line for each question and
// what may be wrong; the exit code is 0 for a healthy GPU, for the specification and for devices of
// different kinds, 1 for a suspect GPU.
Printed compare_command(const CalibrateOptions& options);

// The table, the verdict and its likely causes.
std::string health_text(const HealthReport& report);

}  // namespace orrery
