// SPDX-License-Identifier: Apache-2.0
// Knows when the last of flows ends that start together, without running them.
#pragma once

#include <optional>
#include <vector>

#include "sim/base/units/ticks.h"
#include "sim/engine/flows/flows.h"

namespace orrery {

// All flows of the table start at once, nothing else runs; one of an entry moves FlowEntry::bytes
// times `bytes`. FlowClock's last end, to the picosecond; nullopt where only a run can tell:
// sizes differ, a flow has a cap, background runs, links of two levels are all but equally full.
//
// Why it is exact. Progressive filling first saturates the links with the least capacity over
// weight, at that level r. While all flows of such a link run, each of them is fixed by it at r;
// flows that end elsewhere only raise other links' levels, in floating point too, since division
// is monotone. Sizes are equal and no rate is ever below r, so that nobody ends after them. Whoever
// is not on such a link has at least the next level r' until the first of all flows ends, and so is
// ahead by then: by more than any rounding, which is asked for.
std::optional<Ticks> last_end(const FlowTable& table, double bytes);

// The same of all flows: FlowClock's ends, to the picosecond, and the rates that flows keep until
// then. Empty where only a run can tell: sizes or priorities differ, some never end.
//
// Why it is exact. Sizes are equal, so that the fastest flows end first. Whoever goes on is slower:
// a link fixed it on which it is among the fastest, and none of those that left was on that link.
// Filling without these is the same up to the levels of those that go on, all of which keep theirs.
struct FlowEnds {
  std::vector<Ticks> ends;
  std::vector<double> rates;
};
FlowEnds ends_together(const FlowTable& table, double bytes);

}  // namespace orrery
