// SPDX-License-Identifier: Apache-2.0
// Finds how far a job gets from the layout that runs now with a few changed decisions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/advise/search/expand.h"
#include "sim/advise/stop_point.h"
#include "sim/explain/reasons.h"
#include "workloads/layout/decisions.h"

namespace orrery {

// In which decisions `layout` differs from `now`, in the order above. What means nothing in
// `layout` is no change: a schedule of one stage, the exchange of one context rank, sequence
// parallelism of one tensor rank. Layers of stages follow where the number of positions changes.
std::vector<Decision> changed(const Layout& now, const Layout& layout);

// The best layout within so many changes.
struct Rung {
  int changes = 0;  // that were allowed
  // By more than tie_tolerance than with fewer. Else the layout of the rung before, and without one
  // nothing: what runs now stays.
  bool better = false;
  std::vector<Decision> what;  // in which it differs
  Candidate candidate;
  Stack stack;
  std::string difference;         // against what runs now, and where the time goes
  double faster = 0;              // steps per second over those of now, less one
  std::vector<FlagChange> flags;  // to change from now
};
struct Ladder {
  int asked = 0;            // changes; 0: nothing was asked
  std::vector<Rung> rungs;  // of 1, 2, ... changes
  std::int64_t searches = 0, considered = 0;
  int forced = 0;  // decisions that the question fixes at other values than now's
  bool stopped_early = false;
};

struct SmallStepOptions {
  int changes = 1;
  int threads = 0;
};

// Exact: every set of so many decisions is searched with all others as they are now. `subjects`:
// of each recipe of the ground. `limits`: of the question; they hold on every rung. A rung that
// `stop` ends is left out.
Ladder small_steps(const SearchGround& ground, const std::vector<SearchSubject>& subjects,
                   const SearchLimits& limits, const Scenario& now, const SmallStepOptions& options,
                   StopPoint& stop);

}  // namespace orrery
