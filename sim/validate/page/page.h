// SPDX-License-Identifier: Apache-2.0
// Knows the page that shows a validation in a browser.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/validate/score/gates.h"

namespace orrery {

// A section whose text stands as it would in a terminal.
struct PageText {
  std::string title, text;
};

// One HTML document with everything in it (pictures included, no script, nothing fetched): figures
// by group, gates where there are any, rows that are farthest off, errors by bins, pictures, `more`
// and what was not scored.
std::string validation_page(const std::vector<ScoredRow>& rows,
                            const std::vector<GateVerdict>& gates,
                            const std::vector<PageText>& more);

// Writes every picture of the page as <name>.svg into the folder, which is made where it is
// missing. Error when the folder cannot be written.
void write_validation_pictures(const std::filesystem::path& folder,
                               const std::vector<ScoredRow>& rows);

}  // namespace orrery
