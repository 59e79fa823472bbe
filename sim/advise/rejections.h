// SPDX-License-Identifier: Apache-2.0
// Knows why each family of layouts holds no better one: what it lacks, or what it waits for.
#pragma once

#include <vector>

#include "sim/advise/advisor.h"
#include "sim/advise/search/search.h"

namespace orrery {

// One for every tp, pp and ep (of all recipes, cp and etp together), without the winner's: first
// those that fit, by how much slower they are, then those that do not, nearest miss first. Layouts
// that are listed stand as they are listed (`simplified`, empty: as they were found). On so many
// threads (0: all cores).
std::vector<Rejection> explain_rejections(const SearchGround& ground, const SearchResult& found,
                                          const std::vector<Simplified>& simplified, int threads);

}  // namespace orrery
