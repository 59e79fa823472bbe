// SPDX-License-Identifier: Apache-2.0
// Knows into which groups scored rows fall, and the figures of a group that gates hold.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/validate/score/report.h"

namespace orrery {

struct RowGroup {
  std::string name;
  std::vector<const ScoredRow*> rows;
};

// Rows with a whole layout: by source and GPU ("MosaicML llm-foundry benchmarks, H100-SXM5-80GB"),
// published ones by GPU ("published, B200"), and by kind ("all", "published", "sweeps", "experts",
// "1,024 GPUs and more"); "layout not wholly told" has the others. Empty groups are left out.
std::vector<RowGroup> row_groups(const std::vector<ScoredRow>& rows);

// Figures of a group by name, as shares (0.06 is 6%), those that its rows tell:
// speed_median, speed_p90, speed_bias (without its sign), peak_median, static_median, oom_wrong,
// false_fits (of the rows that ran out of memory), not_covered (by the 90% range), range_width.
using Figures = std::map<std::string, double>;
struct GroupFigures {
  std::string group;
  int rows = 0;
  Figures figures;
};
Figures figures_of(const std::vector<const ScoredRow*>& rows);

// Of every group; of "all" also `skipped` (rows with a whole layout that are not predicted). For
// each source with ranked layouts a group "order of layouts, SOURCE": rank_median_short (what the
// median rank correlation lacks to 1), loss_median and loss_worst (of the layout that is predicted
// to be first, against the best).
std::vector<GroupFigures> group_figures(const std::vector<ScoredRow>& rows);

}  // namespace orrery
