// SPDX-License-Identifier: Apache-2.0
// Knows what compute and collectives cost each other when they run at once, from measured pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/calibrate/log/measured_log.h"

namespace orrery {

// One measured pair: what ran, and the times of one call alone and while the other ran all along.
struct OverlapPair {
  int run = 0;                      // index into MeasuredLog::conditions
  std::string compute, collective;  // "gemm", "all-reduce"
  bool urgent = false;              // the collective's stream goes before the compute's
  std::int64_t ranks = 0;
  double bytes = 0;
  int most_ctas = 0;  // thread blocks that the library was allowed; 0: its own choice
  int ctas = 0;       // that it took; 0: not known
  double compute_slowdown = 1, collective_slowdown = 1;  // time beside over time alone
  double alone = 0;                                      // of a call, seconds
  // Time that compute loses to one collective that it hides, over that collective's time alone:
  // what a stack calls overlap_cost where compute is the longer.
  double compute_cost = 0;
  // The same of a collective that hides compute, over the compute's time alone.
  double collective_cost = 0;
};

std::vector<OverlapPair> overlap_pairs(const MeasuredLog& log);

// Middle and spread of what pairs that have something in common measured.
struct OverlapCost {
  std::string group;                // "26.2 MB beside gemm, all-reduce"
  std::string compute, collective;  // collective: "" for all of them together
  double bytes = 0;                 // of a call; 0: all sizes
  int most_ctas = 0;
  bool urgent = false;
  int pairs = 0;
  double median = 0, low = 0, high = 0;                  // compute_cost: middle, least and most
  double compute_slowdown = 1, collective_slowdown = 1;  // medians
};

// The pairs at the library's own choice of thread blocks by compute, collective and size; limited
// ones by compute, size and limit. Then "all": products beside calls at the library's own choice,
// where `median` is what all calls together cost over the time that they take alone, and low and
// high are the same of the kind of collective in the run where it is least and most. A small call
// between large products mostly waits for a place on the chip, so that each by itself may cost more
// than its time; over a step's traffic that is a small part.
std::vector<OverlapCost> overlap_costs(const std::vector<OverlapPair>& pairs);

// The section "overlap" of hw_models/calibration/<device>/fit.json, for people: nothing reads it,
// since a stack's overlap_cost also depends on what the stack runs beside its traffic. Null where
// nothing was measured.
SortedJson overlap_section(const std::vector<OverlapCost>& costs);

// A table of them, for people.
std::string overlap_text(const std::vector<OverlapCost>& costs);

}  // namespace orrery
