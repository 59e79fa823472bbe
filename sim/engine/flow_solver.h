// Knows the max-min fair rates of flows that share links, solved anew only where something changed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/flows.h"

namespace orrery {

// Progressive filling over flat arrays: all rates rise together; the links with the least
// residual / weight saturate first and fix their flows. Within a priority every flow so has a
// saturated link (or its cap) on which its rate is greatest (law 4), and no link passes its
// capacity (law 3). Lower priorities get what higher ones leave. Residuals are capacity minus level
// times exact weight, level by level, so that folded and unfolded tables give the same bits (law
// 5). Flows join and leave; solve() touches only the connected components that changed.
class FlowSolver {
 public:
  // Flows of the table do not run until start(). `table` must outlive the solver; its link
  // capacities may be changed through set_capacity only.
  explicit FlowSolver(const FlowTable& table);

  void start(FlowIndex flow);  // aborts when it runs already
  void stop(FlowIndex flow);   // aborts when it does not
  void set_capacity(LinkIndex link, double bytes_per_second);

  // Brings all rates up to date; returns the flows whose rate's bits changed (stopped flows are not
  // among them). The span is valid until the next call.
  std::span<const FlowIndex> solve();

  double rate(FlowIndex flow) const;  // B/s of one flow of the entry; 0 when stopped or cut off
  double load(LinkIndex link) const;  // B/s on one link of the entry
  double capacity(LinkIndex link) const;
};

}  // namespace orrery
