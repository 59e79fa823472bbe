// SPDX-License-Identifier: Apache-2.0
// Knows how far a job comes on the accelerators that it got, in whole steps.
#pragma once

#include <cstdint>

#include "sim/engine/jobs/job_work.h"

namespace orrery {

// One stretch of a job on one place, at one speed.
struct JobRun {
  FleetTime placed;                  // it got its place, or began anew on it
  FleetTime from;                    // or got its speed
  FleetTime begin;                   // its first step
  std::int64_t step_ps = 1'000'000;  // on this place
  std::int64_t capped_ps = 0;        // of these that a cap of power adds
  std::int64_t done = 0;             // steps before that first one
  // After `begin`, until the step or save that was under way as the speed changed is over: it is
  // taken for done. In a stretch before, its time was accounted for.
  std::int64_t lead_ps = 0;
  bool in_step = false;      // a step is what is under way
  std::int64_t saved = 0;    // steps in the newest save that counts at `begin`
  std::int64_t pending = 0;  // in one that counts at
  FleetTime pending_at = fleet_never;
};

// Whole steps of a job that takes so long, alone and well placed: at least one, if it takes any
// time.
std::int64_t steps_of(const JobWork& work, FleetTime length);

// So many steps, rounded up.
FleetTime length_of(std::int64_t steps, std::int64_t step_ps);

// The end of a run that nothing stops, with the saves that fall into it, rounded up.
FleetTime end_of(const JobWork& work, const JobRun& run, std::int64_t steps);

// What a run has reached at a time.
struct RunReach {
  std::int64_t steps = 0;  // of the job, whole ones, those of before counted
  std::int64_t saved = 0;  // of these in the newest save that counts; without one those of before
  std::int64_t saves = 0;  // that are over
};
RunReach reach_of(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime at);

// Whoever stops computing `at` has its whole steps in a save that counts at `counts`: that of
// before, one that is under way until `stops`, or a new one. Nobody may stop who never saves.
struct LastSave {
  FleetTime stops, counts;
};
LastSave last_save_of(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime at);

// The stretch that follows at another speed from `now` on, which is not before `begin`: what is
// under way ends at the old one.
JobRun at_other_speed(const JobWork& work, const JobRun& run, std::int64_t steps, FleetTime now,
                      std::int64_t step_ps);

// Saves that a job takes from one step to a later one.
std::int64_t saves_between(const JobWork& work, std::int64_t from, std::int64_t to);

// Where the time of a run goes that ended at `at`, or `lead_ps` later, and of which `kept` steps of
// the job count. Of one accelerator; the parts sum to at + lead_ps - from, less the run's own lead.
struct RunParts {
  GpuPicos useful = 0;  // steps that count, as fast as they are alone and well placed
  GpuPicos slowed = 0;  // what they took longer, but for
  GpuPicos capped = 0;  // what a cap of power added
  GpuPicos saving = 0;
  GpuPicos starting = 0;  // and what rounds an end up
  GpuPicos lost = 0;      // steps that do not count
};
RunParts parts_of(const JobWork& work, const JobRun& run, const RunReach& reach, std::int64_t kept,
                  FleetTime at, std::int64_t lead_ps = 0);

}  // namespace orrery
