// SPDX-License-Identifier: Apache-2.0
// Counts which jobs ended by their deadlines, and who was kept back for cheap or clean hours.
#pragma once

#include <cstdint>

#include "sim/base/units/units.h"
#include "sim/engine/fleet/fleet_record.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// Jobs that run or wait beyond the end of a run and are due later are not counted: nobody knows.
struct FleetDeadlines {
  std::int64_t jobs = 0;      // with a deadline, of which it is known
  std::int64_t met = 0;       // ended by it
  std::int64_t too_long = 0;  // of these jobs, whose length alone is more than their deadline
  Seconds late;  // of those that missed it, in the mean: until their end, or the end of the run
  std::int64_t delayed = 0;  // jobs that were kept back
  Seconds delay;             // these, in the mean
  double met_share() const {
    return jobs > 0 ? static_cast<double>(met) / static_cast<double>(jobs) : 1;
  }
};

// A job that was rejected missed its deadline, but is not late. One that was cancelled, since a job
// that it comes after did not complete, has none.
FleetDeadlines fleet_deadlines(const ClusterJobs& list, const FleetRecord& record);

}  // namespace orrery
