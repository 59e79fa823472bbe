// SPDX-License-Identifier: Apache-2.0
// Knows how to search the grid best first: the part with the lowest bound is split next.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/advise/search/expand.h"
#include "sim/base/tasks/tasks.h"

namespace orrery {

struct SearchOptions {
  std::size_t keep = 10;
  bool variants = false;                  // keep several settings of one shape
  std::optional<Front::Axis> front = {};  // also the front of time against this
  bool prune = true;                      // false: every layout that fits is run
  int threads = 0;                        // 0: all cores
  Seconds time_limit;                     // 0: none
  // Work that the search may take: the same on any machine under any load, unlike time_limit.
  std::int64_t most_batches = 0;  // 0: no limit
  // Called now and then from the calling thread; may be empty.
  std::function<void(double share, std::int64_t simulated)> progress = {};
  // Where processes share the search: slices of its families are tasks (shared_search).
  Tasks* tasks = nullptr;
};

// What became of the layouts of one family.
struct FamilyOutcome {
  std::int64_t leaves = 0, rejected = 0, pruned = 0, simulated = 0;
  std::optional<Found> best, first;  // that was run; of the first attempts at it
};

struct SearchResult {
  std::vector<Found> best, front;                    // best first; fastest first
  std::vector<std::vector<FamilyOutcome>> families;  // of each recipe, in the grid's order
  // considered = rejected + pruned + simulated + left.
  std::int64_t considered = 0, rejected = 0, pruned = 0, simulated = 0;
  std::int64_t left = 0;     // neither looked at nor ruled out when the search stopped
  double least_left = 0;     // score below which none of those lies
  std::int64_t batches = 0;  // of parts that were split: what was done, and may be asked for again
  bool stopped_early = false;
};

// Exact: the layouts that running every one would find, on any number of threads. Stops early on
// Ctrl-C, at the time limit and after most_batches.
SearchResult search(const SearchGround& ground, const SearchOptions& options);

// A layout of a family that was run before the search, without proof that it is the family's best.
struct FirstAttempt {
  Place family;
  Found found;
};
std::vector<FirstAttempt> first_attempts(const SearchGround& ground, const SearchOptions& options);

// The families of a search that a process looks at, and the first attempts at all of them.
struct SearchSlice {
  const std::vector<FirstAttempt>& attempts;
  std::function<bool(const Place& family)> has;
};
// As search(), of these families alone: no layout of them is better than the last that it found.
SearchResult search_slice(const SearchGround& ground, const SearchOptions& options,
                          const SearchSlice& slice);

}  // namespace orrery
