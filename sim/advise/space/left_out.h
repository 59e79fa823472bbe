// SPDX-License-Identifier: Apache-2.0
// Knows what a search for layouts did not look at, so that an answer can say it.
#pragma once

#include <string>
#include <vector>

#include "sim/advise/space/search_space.h"

namespace orrery {

// What the program could run and the grid does not hold ("more than 16 chunks a stage"): it ends
// lists that have no end, or takes a few values of what can be any. What a limit fixes is not
// named, nor what the program does not offer.
std::vector<std::string> left_out(const SearchSubject& subject, const SearchLimits& limits);

}  // namespace orrery
