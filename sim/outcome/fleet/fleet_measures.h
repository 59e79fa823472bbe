// SPDX-License-Identifier: Apache-2.0
// Knows what a cluster's months come to: waits, completions, and where its accelerator-time went.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/cluster/fleet_run.h"
#include "sim/outcome/fleet/energy_bill.h"
#include "sim/outcome/fleet/fleet_deadlines.h"
#include "sim/outcome/fleet/fleet_fairness.h"
#include "sim/outcome/fleet/service_measures.h"

namespace orrery {

// Of n values in order: p50, p90 and p99 are those at place n / 2, 0.9 n and 0.99 n, rounded down
// and counted from 0.
struct TimeSpread {
  FleetTime p50, p90, p99, most;
  __int128 sum_us = 0;
  std::int64_t count = 0;
  Seconds mean() const;
  Seconds sum() const;
};
TimeSpread spread_of(std::vector<FleetTime> times);

struct FleetGroup {
  std::string name;  // "9 to 64 GPUs", or a queue
  std::int64_t jobs = 0;
  double held_share = 0;  // of all accelerator-time that jobs held
  TimeSpread wait;
};

struct FleetGroups {
  std::vector<FleetGroup> by_size, by_queue;  // those that have jobs
};

// Shares of the cluster's accelerator-time from the first submission to the last end. They sum
// to 1.
struct FleetShares {
  double useful = 0;             // steps that count, at the speed of the job alone and well placed
  double standby = 0;            // replicas of served models, beyond those that the load needs
  double in_vain = 0;            // the same of jobs that are recorded as failed or cancelled
  double slowed = 0;             // what steps took longer where they were placed
  double capped = 0;             // what they took longer by caps of power
  double saving = 0;             // stopped by saves
  double starting = 0;           // until the first step, after stops as well
  double lost = 0;               // steps that were computed again
  double preempted = 0;          // the same of jobs that others stopped
  double unshared = 0;           // of accelerators held by parts, what nobody asked for
  double short_of = 0;           // free, but too few for the head of the queue
  double scattered = 0;          // free, and enough for the head, but in no place for it
  double spare = 0, repair = 0;  // hosts that stand by; that are under repair
  double idle = 0;               // free, and nobody waited
};

// Completion over length, at least 1; lengths below 10 s count as 10 s. Of jobs that ended: without
// one all are 0.
struct Slowdowns {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

// Of jobs that come after others.
struct FleetDependencies {
  std::int64_t jobs = 0;
  std::int64_t cancelled = 0;   // what they come after did not complete
  std::int64_t still_held = 0;  // as the run ends
  TimeSpread held;              // before they were eligible, of those that were
};

// Of jobs that finished, as they are recorded.
struct BadEnds {
  std::int64_t failed = 0, cancelled = 0;
};

// Of accelerators and hosts.
struct MeasuredPower {
  Watts mean, peak;
  Seconds over_limit;              // in which more was drawn than a limit
  PowerRamps ramps;                // the largest rises and falls, from the idle cluster on
  std::int64_t suspended = 0;      // stops of jobs for want of power
  ThresholdTimes stepped;          // clocks were down
  std::optional<EnergyBill> bill;  // set by who knows prices
};

struct FleetMeasures {
  std::int64_t submitted = 0, finished = 0, rejected = 0, running = 0, queued = 0;
  BadEnds bad_ends;
  FleetDependencies dependencies;
  // From when they were eligible. Of jobs that started, but for those that ran as the list began
  // and went on at once; that ended.
  TimeSpread wait, completion;
  Slowdowns slowdown;
  FleetFairness fairness;
  FleetShares shares;
  GpuMicros held = 0, scattered = 0;
  std::int64_t stops = 0, preemptions = 0;  // of jobs: by what broke; by others
  std::int64_t moves = 0;                   // that jobs left for another size or place
  Seconds waited_again;                     // after those, all jobs together
  Joules energy;                            // of accelerators and hosts
  MeasuredPower power;
  FleetTime span;  // from the first submission to the last end
  std::int64_t most_waiting = 0;
  FleetGroups groups;
  FleetDeadlines deadlines;
  std::vector<ServiceMeasures> services;
};

// Replicas of the services are no jobs whose waits and completions count.
FleetMeasures fleet_measures(const ClusterJobs& jobs, const FleetRecord& record,
                             const std::vector<FleetService>& services = {},
                             const ReplicaStops& stops = {});

}  // namespace orrery
