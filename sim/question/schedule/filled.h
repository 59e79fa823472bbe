// SPDX-License-Identifier: Apache-2.0
// Answers how much of a cluster of shared accelerators each of several rules hands out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/packing/fill.h"

namespace orrery {

// As it was asked, in words.
struct FillWords {
  std::string hosts, tasks;
  std::string rules = "best-fit", demand = "1.3", seeds = "10";
};

// Shares of the accelerators that are handed out when so much was asked for, over the seeds.
struct FilledMark {
  double demand = 0;
  double mean = 0, low = 0, high = 0;  // the least and the most of a seed
};

struct FilledPoint {
  FillRule rule = FillRule::best_fit;
  std::vector<FilledMark> marks;  // the last at the demand that was asked
  double refused = 0;             // share of tasks that found no place, mean over the runs
  std::int64_t runs = 0;          // that came to their end; those alone count
};

struct Filled {
  std::int64_t hosts = 0, gpus = 0, tasks = 0;
  double asked = 0;   // by the tasks of the list, over the accelerators
  double demand = 0;  // asked for in all
  std::int64_t seeds = 0;
  std::vector<FilledPoint> points;  // of rules of which a run came to its end
  std::size_t best = 0;
  bool stopped = false;  // Ctrl-C ended it early
};

// Errors: files that are none, rules that are not known, a demand that is not between 0 and 10, no
// seed.
Filled fill_hosts(const FillWords& words, std::uint64_t first_seed, int threads);

}  // namespace orrery
