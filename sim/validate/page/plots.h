// SPDX-License-Identifier: Apache-2.0
// Knows the pictures of validation: predicted against measured, and errors against what a run was.
#pragma once

#include <string>
#include <vector>

#include "sim/validate/score/residuals.h"

namespace orrery {

struct Picture {
  std::string name;   // of its file, without ".svg"
  std::string title;  // for people
  std::string svg;    // the whole document
  // Each of its plots alone, for pages on which they stand beside each other where there is room.
  std::vector<std::string> parts;
};

// Scatter plots of speeds (published runs by GPU and by source, sweeps by source) and of memory;
// errors of published runs and of sweeps against GPUs, batch and sequence; medians and ranges of
// errors by GPU, release, precision and more. Pictures without a point are left out.
std::vector<Picture> validation_pictures(const std::vector<ScoredRow>& rows);

// For each bin of the tables the median error and the range of nine in ten rows.
std::string residuals_svg(const std::string& heading, const std::vector<ResidualTable>& tables);

}  // namespace orrery
