// SPDX-License-Identifier: Apache-2.0
// Knows how to find the best layouts: a finite grid, rejected by memory first, then simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/search/incumbents.h"
#include "sim/advise/simplify.h"
#include "sim/advise/small_steps.h"
#include "sim/advise/space/search_space.h"
#include "sim/base/tasks/tasks.h"
#include "sim/explain/reasons.h"
#include "sim/outcome/simulate.h"
#include "sim/outcome/verdict.h"

namespace orrery {

struct Question {
  Cluster cluster;
  Model model;
  Job job;                 // training
  std::string stack_name;  // loaded per precision by the advisor
  SearchLimits limits;
  std::vector<PrecisionRecipe> precisions = {PrecisionRecipe::bf16};  // searched side by side
  std::vector<Optimizer> optimizers = {};  // empty: the stack's for each precision
  Objective objective = Objective::time;
};
struct AdviseOptions {
  int top = 10;
  int threads = 0;                         // 0: all cores
  bool variants = false;                   // list several settings of one shape
  std::optional<Front::Axis> pareto = {};  // also the front of speed against this
  bool prune = true;   // false: simulate every layout that fits (the same advice, slower)
  Seconds time_limit;  // of the search; 0: none
  std::int64_t most_batches = 0;  // of parts that the search splits; 0: no limit
  // Advice::stopped_after of the advice that is repeated.
  std::optional<std::int64_t> stop_after = {};
  double memory_reserve = 0;       // share of the device's memory that a layout must leave free
  double rental_per_gpu_hour = 0;  // USD; 0: the accelerator's own
  // What a listed layout may lose to be simpler; 0: layouts as the search found them, as they are
  // with `variants` or `pareto` whatever stands here. tie_tolerance is what advice is given with.
  double tie = 0;
  // What runs now: predicted, and held against the winner. Of the same cluster, model and job.
  std::optional<Scenario> like = {};
  int changes = 0;  // with `like`: the best with 1, 2, ... so many changed decisions; 0: not asked
  // Joins the winner's range; it must outlive the call. nullptr: ranges of values alone.
  const ModelError* model_error = nullptr;
  // No reasons, differences, rejections or full prediction of the winner: for points of a plan.
  bool brief = false;
  // Called now and then from the calling thread; may be empty.
  std::function<void(double share, std::int64_t simulated)> progress;
  // Where processes share the search. After a part of it (Tasks::whole) the advice says nothing.
  Tasks* tasks = nullptr;
};
// What became of all layouts that share tp, pp and ep, and why none of them is the best.
struct Rejection {
  std::string family;  // "TP1 PP1"
  std::int64_t layouts = 0;
  bool fits = false;   // some of them
  double slower = 0;   // its best layout's score over the winner's, less one; a bound unless `run`
  bool run = false;    // its best layout was run, else `slower` is what no layout of it goes below
  double margin = 0;   // where none fits: capacity over need less one, of its nearest miss
  std::string reason;  // one sentence
};
struct Advice {
  std::vector<Candidate> best;  // by objective, ties in grid order; simpler ones with `tie`
  // Of each of `best` the exact layout and what of it was taken back; empty without `tie`.
  std::vector<Simplified> simplified;
  std::vector<Candidate> pareto;  // fastest first, each with less of the other than all before it
  std::optional<Front::Axis> front;  // what the other is; with `pareto`
  Prediction winner;  // full prediction with assumptions; empty stages when none fits
  std::string why;    // what limits the winner; what is missing when none fits
  // Per runner-up: what it does differently and where the time goes.
  std::vector<std::string> differences;
  Reasons reasons;  // for the winner; the ranking is of the first five and, last, of `like`
  std::optional<Comparison> like;     // when asked for
  Ladder ladder;                      // of small steps from `like`, when asked for
  std::vector<Rejection> rejections;  // families without the winner: those that fit, nearest first
  // considered = rejected_for_memory + pruned + simulated + left
  std::int64_t considered = 0, invalid = 0, rejected_for_memory = 0, simulated = 0;
  std::int64_t pruned = 0;            // not simulated: their bound lies above the last of `best`
  std::vector<std::string> left_out;  // what the program could run and the grid does not hold
  std::int64_t left = 0;              // not looked at when the search stopped early
  std::int64_t batches = 0;           // of parts that the search split: its work
  double gap = 0;              // stopped early: how much better than the first the best may be
  double memory_reserve = 0;   // as asked for
  bool stopped_early = false;  // Ctrl-C or a limit: best so far
  // Where Ctrl-C ended what follows the search (small steps, the next larger count), as places that
  // it passed (StopPoint); none: it did not.
  std::optional<std::int64_t> stopped_after;
  // Where nothing fits: the next larger count on which something does; 0: none that is known.
  std::int64_t fits_from = 0;
  Stack stack;  // of the winner's precision
};

// Of the best layout; where nothing fits, why not.
Verdict verdict_of(const Advice& advice);

// What a candidate is ranked by at one count of accelerators, least first: seconds a step, or for
// Objective::energy joules a step of accelerators and their hosts.
double measure(const Question& question, const Candidate& candidate);

// Same question, same advice, on any number of threads, pruned or not (unless stopped early).
Advice advise(const Question& question, const AdviseOptions& options);
// Whether such an advice has a layout: what fits is asked alone, not how fast it is. No where
// Ctrl-C ended it.
bool any_fit(const Question& question, const AdviseOptions& options);

}  // namespace orrery
