// SPDX-License-Identifier: Apache-2.0
// Knows how charts become pictures: vl-convert, which a Python interpreter runs.
#pragma once

#include <filesystem>
#include <vector>

#include "sim/app/charts/charts.h"

namespace orrery {

// MachineFailed, with what to install, where no interpreter with vl-convert-python is found: the
// one that $ORRERY_PYTHON names, else python3.
void check_drawing();

// Writes NAME.vl.json, NAME.svg and NAME.png of each chart into the folder, each whole or not at
// all. MachineFailed where one cannot be drawn.
void draw_charts(const std::vector<Chart>& charts, const std::filesystem::path& folder);

}  // namespace orrery
