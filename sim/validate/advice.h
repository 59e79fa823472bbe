// SPDX-License-Identifier: Apache-2.0
// Knows how the advisor's own layout compares with the best of those that others published.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/advisor.h"
#include "sim/validate/score/report.h"

namespace orrery {

// One job that a source ran: the fastest of its layouts, and what advise finds among all layouts
// that the stack offers, with the job's own precision and optimizer. What no row tells (offload,
// rank order, buckets) stays as the stack has it.
struct AdvisedJob {
  const ScoredRow* published = nullptr;  // the fastest as measured
  std::size_t measured = 0;              // layouts of the job with a measured speed
  std::optional<Candidate> advised;      // nullopt: nothing fits with the memory reserve
  // The advisor's layouts in its order, best of each shape; the first of them that was run.
  const ScoredRow* run = nullptr;
  std::size_t place = 0;  // of that, from 0
  bool same = false;      // advised and published agree in every decision that rows tell
  double gain = 0;        // advised over published as predicted, tokens/s/GPU, less one
  // 90% range of it with every uncertain value moved in both alike; as `gain` where they agree.
  double low = 0, high = 0;

  // The measured speed of the advised layout over the published one's, less one.
  std::optional<double> measured_gain() const;
};

// Whether two layouts agree in all that rows tell: sizes, micro-batch, schedule, chunks, sequence
// parallelism, recompute, and whether parameters are sharded.
bool same_decisions(const Layout& a, const Layout& b);

// Of every training job of the rows that are no sweep's, whose speed is scored and whose layout is
// wholly told, in the order in which they first appear. `threads` 0: all cores.
std::vector<AdvisedJob> advise_published(const std::vector<ScoredRow>& rows,
                                         const ModelError& error, int threads, bool quiet);

// Counts by source, then a line a job.
std::string advice_text(const std::vector<AdvisedJob>& jobs);

}  // namespace orrery
