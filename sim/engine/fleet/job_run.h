// SPDX-License-Identifier: Apache-2.0
// Knows how far a job comes on the accelerators that it got, in whole steps.
#pragma once

#include <cstdint>

#include "sim/engine/fleet/job_work.h"

namespace orrery {

// One stretch of a job on one place.
struct JobRun {
  FleetTime from;                    // it got its place
  FleetTime begin;                   // its first step
  std::int64_t step_ps = 1'000'000;  // on this place
  std::int64_t done = 0;             // steps that counted before
};

// Whole steps of a job that takes so long, alone and well placed: at least one, if it takes any
// time.
std::int64_t steps_of(const JobWork& work, FleetTime length);

// The end of a run that nothing stops, with the saves that fall into it, rounded up.
FleetTime end_of(const JobWork& work, const JobRun& run, std::int64_t steps);

// What a run has reached at a time.
struct RunReach {
  std::int64_t steps = 0;  // of the job, those of before counted
  std::int64_t saved = 0;  // of these in the newest save that counts; without one those of before
  std::int64_t saves = 0;  // that are over
};
RunReach reach_of(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime at);

// Where the time of a run goes that ended at `at` and of which `kept` steps of the job count. Of
// one accelerator; the parts sum to at - from.
struct RunParts {
  GpuPicos useful = 0;  // steps that count, as fast as they are alone and well placed
  GpuPicos slowed = 0;  // what they took longer
  GpuPicos saving = 0;
  GpuPicos starting = 0;  // and what rounds an end up
  GpuPicos lost = 0;      // steps that do not count
};
RunParts parts_of(const JobWork& work, const JobRun& run, const RunReach& reach, std::int64_t kept,
                  FleetTime at);

}  // namespace orrery
