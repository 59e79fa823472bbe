// SPDX-License-Identifier: Apache-2.0
// Knows the max-min fair rates of flows that share links, solved anew only where something changed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/flows/flows.h"

namespace orrery {

// Progressive filling over flat arrays: all rates rise together; the links with the least
// residual / weight saturate first and fix their flows. Within a priority every flow so has a
// saturated link (or its cap) on which its rate is greatest (law 4), and no link passes its
// capacity (law 3). Lower priorities get what higher ones leave. Residuals are capacity minus level
// times exact weight, level by level, so that folded and unfolded tables give the same bits (law
// 5). Flows join and leave; solve() touches only the connected components that changed, and where
// flows only left, of one priority, those at least as fast: a filling without them is the same up
// to their level, on every link of theirs too, which it had not saturated below. Rates are a
// function of which flows run and of the capacities, to the bit, whatever happened before.
//
// A link of capacity 0 gives its flows rate 0, one of infinite capacity limits and joins nothing; a
// running flow that neither a finite link nor a cap limits aborts in solve(). Max-min fairness is
// not monotone: more capacity on one link may slow a flow elsewhere, so no law says so.
class FlowSolver {
 public:
  // Flows of the table do not run until start(). The solver keeps what it needs of the table.
  // Aborts when a weight is no multiple of 2^-30, or a capacity or cap is negative or not a number.
  explicit FlowSolver(const FlowTable& table);

  void start(FlowIndex flow);  // aborts when it runs already
  void stop(FlowIndex flow);   // aborts when it does not
  void set_capacity(LinkIndex link, double bytes_per_second);

  // Brings all rates up to date; returns the flows whose rate's bits changed, in ascending order
  // (stopped flows are not among them). The span is valid until the next call.
  std::span<const FlowIndex> solve();

  bool running(FlowIndex flow) const { return running_[flow] != 0; }
  double rate(FlowIndex flow) const { return rate_[flow]; }  // B/s of one flow of the entry
  double load(LinkIndex link) const;                         // B/s on one link of the entry
  double capacity(LinkIndex link) const { return links_[link].capacity; }
  // Flows that the last solve() looked at: those of the components that changed that may change.
  std::size_t solved_flows() const { return component_.size(); }

 private:
  struct Link {
    double capacity = 0, residual = 0;
    std::int64_t weight = 0;  // units of flows that are still to be fixed
    std::int64_t fixed = 0;   // units of flows that this level fixes
    double key = -1;          // the heap's, when the filling reaches `from`; -1: it starts anew
    std::uint32_t first = 0, active = 0;  // slots of the running flows' uses
    bool finite() const;
  };
  struct Use {
    LinkIndex link;
    std::uint32_t slot;  // where in slots_ it is
    std::int64_t units;
  };
  struct Slot {
    std::uint32_t use;
    FlowIndex flow;
  };
  // A link, or a flow's cap, and the level below which it does not saturate.
  struct Limit {
    double level;
    std::uint32_t index;
    bool cap;
  };
  static bool later(const Limit& a, const Limit& b) { return a.level > b.level; }

  void index_uses(const FlowTable& table);
  void move_slot(std::uint32_t use, std::uint32_t slot);
  void reach_flow(FlowIndex flow);
  void collect_component();
  void keep_slower(Link& link);
  static double first_key(const Link& link);
  void fill(std::span<const FlowIndex> flows);  // flows of one priority
  void gather_level();
  void fix(FlowIndex flow);
  void apply_level();
  void sort_changed();
  std::span<Use> uses_of(FlowIndex flow) {
    return std::span(uses_).subspan(first_use_[flow], first_use_[flow + 1] - first_use_[flow]);
  }

  std::vector<Link> links_;
  std::vector<Use> uses_;                 // by flow
  std::vector<std::uint32_t> first_use_;  // of every flow, and the end
  std::vector<Slot> slots_;               // by link: running flows first
  std::vector<double> rate_, cap_;
  std::vector<std::int32_t> priority_;
  std::vector<std::uint8_t> running_, unfixed_;

  // What changed since the last solve().
  struct Touched {
    std::vector<LinkIndex> links;
    std::vector<FlowIndex> flows;
    double from = infinite;  // flows that are slower keep their rates
  };
  Touched touched_;
  bool one_priority_ = true;
  // Scratch of solve().
  struct Marks {
    std::uint32_t epoch = 0;  // marks are equal to it when set
    std::vector<std::uint32_t> flow, link;
  };
  Marks marks_;
  std::vector<LinkIndex> stack_, filled_, saturated_, affected_;
  std::vector<FlowIndex> component_, changed_, capped_;
  std::vector<std::pair<double, std::int64_t>> slower_;  // rates and units of flows on a link
  std::vector<std::uint64_t> bits_;                      // of changed flows
  std::vector<Limit> heap_;
  double level_ = 0;
  std::size_t left_ = 0;  // flows that are still to be fixed
};

}  // namespace orrery
