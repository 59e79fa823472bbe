// SPDX-License-Identifier: Apache-2.0
// Knows how predictions of measured collectives are grouped and shown, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/validate/parts/collectives.h"

namespace orrery {

// Errors of rows of one kind and size.
struct RegionScore {
  std::vector<double> all, held_out;
};

// Rows of one machine, reach (one scale-up domain or several), library and, in detail, collective.
struct CollectiveGroup {
  std::string gpu, reach, library, collective;
  int rows = 0;
  RegionScore small, large;  // below 1 MiB, and from it on
};
// In the order in which they first appear. `detailed`: a group for every collective and mode.
std::vector<CollectiveGroup> group_collectives(const std::vector<ScoredCollective>& rows,
                                               bool detailed);
// Per library and reach over all machines, then over everything.
std::vector<CollectiveGroup> total_collectives(const std::vector<ScoredCollective>& rows);

// `each_row`: a line for every row. `detailed`: groups of every collective, not of libraries.
std::string collectives_text(const std::vector<ScoredCollective>& rows, bool each_row,
                             bool detailed);

// Appends to the lists "rows" and "groups" of DESIGN section 7.
void add_collectives_json(const std::vector<ScoredCollective>& rows, Json& row_list,
                          Json& group_list);

}  // namespace orrery
