// SPDX-License-Identifier: Apache-2.0
// Knows what jobs of one kind consist of: steps, saves, starts.
#pragma once

#include <cstdint>

#include "sim/base/units/fleet_time.h"
#include "sim/base/units/units.h"

namespace orrery {

// What a job reads from a store that others read too, before it goes on.
struct StoreRead {
  FleetTime alone;               // while nobody else reads; 0: nothing is read
  FleetTime after;               // from the end of it to the first step
  std::int64_t bytes_per_s = 0;  // alone
};

// A recorded length is a row of steps of 10^6 ps. Picoseconds of a step are those of the step
// model; whole steps add up to the time of a cluster without a rounding between them.
struct JobWork {
  std::int64_t step_ps = 1'000'000;  // alone and well placed
  bool priced = false;               // its steps depend on where it is placed (PlacePrices)
  std::int64_t save_steps = 0;       // steps between saves; 0: what stops it takes all its work
  std::int64_t save_ps = 0;          // a save stops it for so long,
  std::int64_t write_ps = 0;         // and counts so much later
  FleetTime start, start_each;       // from its accelerators to the first step: for each of them
  FleetTime restart;                 // longer, once it was stopped: found, started, state read
  FleetTime stop;                    // longer, of a planned stop
  Hertz own_failures = {};           // of the job, wherever it is: its software
  Hertz planned_stops = {};          // saved before
  std::int64_t milliwatts = 0;       // of one accelerator and its share of a host, while it is held
  StoreRead first_read = {};         // at every start: a part of `start`
  StoreRead later_read = {};         // once it was stopped: a part of `restart`
};

// What a job that saved before it was stopped takes longer as it goes on: its state is read, and it
// warms up, as after a failure.
inline FleetTime resume_of(const JobWork& work) {
  return work.later_read.alone + work.later_read.after;
}

// Accelerator-time of jobs, in accelerators x picoseconds.
using GpuPicos = __int128;

}  // namespace orrery
