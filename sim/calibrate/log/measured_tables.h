// SPDX-License-Identifier: Apache-2.0
// Knows which rows of a fit the samples of our own microbenchmarks are.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/log/measured_log.h"
#include "sim/calibrate/log/measurement.h"

namespace orrery {

// Catalogue name of the accelerator on which all samples were taken. Error when there are none, or
// several devices.
std::string measured_device(const MeasuredLog& log);

// Id of the source that fitted curves name: "orrery-measured-h200-sxm".
std::string measured_source(const std::string& device);

// One table for each kind, format and library with samples of work at full clocks (bursts), in the
// order in which they first appear. Left out, and said in the note: copies of one direction, which
// no kernel of a step is; large ones of the driver's; what is faster than the memory.
std::vector<OperatorTable> measured_tables(const MeasuredLog& log);

// The row that one sample of work is, under the power limit where it ran for seconds. The capacity
// of the L2 tells whether its operands were still there from the calls before.
OperatorRow measured_row(const Sample& sample, Bytes l2_capacity);

// The same for samples of a second and more without pause: for checks of the power limit.
std::vector<OperatorTable> sustained_tables(const MeasuredLog& log);

// The rows of each named kernel (norm forward, norm backward, ...) of kinds that hold several: a
// table of its own where they are enough to be fitted. Tables that hold several operations of a
// framework are taken out: no one curve is that of all of them, and steps know what they cost from
// the framework's own samples (software_fit.h).
std::vector<OperatorTable> variant_tables(std::vector<OperatorTable>& tables);

}  // namespace orrery
