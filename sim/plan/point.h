// SPDX-License-Identifier: Apache-2.0
// Knows how one machine of one size is searched, run and paid: the parts of a plan's point.
#pragma once

#include <string_view>

#include "sim/advise/stop_point.h"
#include "sim/plan/plan.h"

namespace orrery {

// Of layouts without offload, with the stack's own ZeRO stage and rank order, and with three kinds
// of recompute (none, the stack's, all), the fastest; where none of them fits, of all layouts. A
// dimension that the question fixes keeps its value. A search of all layouts that did not end
// within its batches is left out. Work is counted, not time: a plan is the same on any machine,
// under any load.
struct StepSearch {
  int threads = 0;
  bool full = false;              // of all layouts from the start
  std::int64_t most_batches = 0;  // of a search of all layouts; 0: with `full` no limit, else none
};
PlanStep plan_step(const Question& question, double memory_reserve, const StepSearch& how);

// The job in months. `gpus` of the cluster are those of the step.
GoodputCase plan_goodput(const PlanChoice& choice, const Cluster& cluster, const PlanStep& step);
BillQuestion plan_bill_question(const PlanChoice& choice, const Cluster& cluster,
                                const PlanStep& step, const GoodputCase& months,
                                const Goodput& goodput);
PlanPoint plan_point(const Plan& plan, std::size_t choice, std::int64_t gpus, PlanStep step);

// The step with so many accelerators, each of which draws what it did: for what depends on the
// machine alone.
PlanStep spread_over(PlanStep step, std::int64_t gpus);

// The most accelerators in whole hosts, up to `most`, whose machine stays within the limits of its
// size when it is run as `step` is: with the spares and the storage that so many need. And the
// first limit that one host more misses ("wiring" where so many are not joined); empty at `most`.
struct AllowedCount {
  std::int64_t count = 0;
  std::string limit;
};
AllowedCount allowed_count(const Plan& plan, std::size_t choice, const PlanStep& step,
                           std::int64_t most);

// What a step lacks (PlanStep::lacks) of which no layout fits.
inline constexpr std::string_view lacks_memory = "memory";

// Of each limit of size that the question sets ("power", "capital", "racks", "floor") the most
// accelerators that it allows, whatever runs on them and without spares and storage.
struct SizeLimit {
  const char* name;
  AffordableCount most;
};
std::vector<SizeLimit> size_limits(const PlanChoice& choice);

// The count that serves the choice best. `at` answers a count; all that it was asked for are left
// in `tried`.
PlanPoint search_count(const Plan& plan, std::size_t choice,
                       const std::function<PlanPoint(std::int64_t)>& at, StopPoint& stop,
                       std::vector<PlanPoint>& tried);

}  // namespace orrery
