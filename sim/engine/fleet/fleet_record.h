// SPDX-License-Identifier: Apache-2.0
// Knows what became of the jobs of a shared cluster, and of its accelerator-time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/fleet/gang_parts.h"
#include "sim/engine/jobs/breakdowns.h"
#include "sim/engine/jobs/incidents.h"
#include "sim/engine/jobs/job_work.h"
#include "sim/engine/power/energy_hours.h"
#include "sim/engine/power/power_ramp.h"
#include "sim/engine/power/power_thresholds.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// What became of a job; fleet_never: it did not start, or did not end.
struct JobRecord {
  FleetTime start = fleet_never, end = fleet_never;  // start: the first
  FleetTime promise = fleet_never;  // the start that it was promised: easy, as a head
  std::int32_t hosts = 0;
  std::int32_t groups = 0;  // of the innermost level of switches; 0: the shape has none
  bool rejected = false;    // it asks for more than the cluster has
  bool cancelled = false;   // a job that it comes after did not complete
  bool still_held = false;  // as the run ended: a job that it comes after had not ended
  std::int32_t stops = 0;   // by what broke
  std::int32_t preemptions = 0;
  std::int32_t moves = 0;  // that it left its place for another size or place, perhaps later
  FleetTime waited_again;  // after both, for a place
  FleetTime delayed;       // kept back at first, for cheap or clean hours
  FleetTime held;          // before that, by jobs that it comes after
};

// Since when it may start, as Slurm's Eligible: waits count from then.
inline FleetTime eligible(const ClusterJob& job, const JobRecord& record) {
  return job.submit + record.held;
}

// Accelerator-time that jobs held, in whole accelerators x picoseconds.
struct FleetWork {
  GpuPicos useful = 0;   // steps that count, at the speed of the job alone and well placed
  GpuPicos in_vain = 0;  // the same of jobs that fail or are cancelled
  GpuPicos slowed = 0;   // what steps took longer on their places
  GpuPicos capped = 0;   // what they took longer by caps of power
  GpuPicos saving = 0, starting = 0;
  GpuPicos lost = 0;       // steps that do not count
  GpuPicos preempted = 0;  // the same of jobs that others stopped
  GpuPicos unshared = 0;   // of accelerators that jobs hold by parts: what nobody asked for
  GpuPicos all() const {
    return useful + in_vain + slowed + capped + saving + starting + lost + preempted + unshared;
  }
};

// Accelerator-time from the first submission to the last end; the parts sum to `all`.
struct FleetUse {
  GpuMicros all = 0;
  GpuMicros held = 0;  // by jobs, wholly or by parts: the parts of `work` sum to it
  FleetWork work;
  // Free while a job waited and the head asked for more than were free; or held by gangs that were
  // not whole.
  GpuMicros short_of = 0;
  GpuMicros scattered = 0;  // free while the head asked for no more, but had no place
  GpuMicros idle = 0;       // free while nobody waited
  GpuMicros spare = 0;      // of hosts that stand by
  GpuMicros repair = 0;     // of hosts under repair
};

// What broke, by kind.
struct BreakdownCount {
  std::int64_t struck = 0;    // somebody held what broke
  std::int64_t stopped = 0;   // jobs
  std::int64_t requeued = 0;  // of these, that lost a host
};

// What a job held that may have several sizes.
struct SizedUse {
  std::uint32_t job = 0;   // its place in the list
  std::int32_t moves = 0;  // that it left a place for another one, or for none
  GpuMicros held = 0;
  FleetTime time;   // that it held any
  FleetTime since;  // it holds those that it has
};

inline double mean_gpus(const SizedUse& use) {
  return use.time.us > 0 ? static_cast<double>(use.held) / static_cast<double>(use.time.us) : 0;
}

struct FleetPower {
  __int128 nanojoules = 0;
  std::int64_t most_milliwatts = 0;
  FleetTime over;     // more than the limit was drawn for so long
  EnergyHours hours;  // where prices change by the hour
  PowerRamps ramps;
  std::int64_t suspended = 0;  // stops of jobs for want of power
  ThresholdTimes stepped;
};

// What accelerators did in a part of a run, in accelerators x millionths of a second; `waiting` in
// jobs, `milliwatts` in those, times the same.
struct TimelinePart {
  GpuMicros held = 0, blocked = 0, idle = 0, spare = 0,
            repair = 0;  // blocked: free, somebody waits
  GpuMicros waiting = 0, milliwatts = 0;
  void add(const TimelinePart& part, std::int64_t times = 1) {
    held += part.held * times;
    blocked += part.blocked * times;
    idle += part.idle * times;
    spare += part.spare * times;
    repair += part.repair * times;
    waiting += part.waiting * times;
    milliwatts += part.milliwatts * times;
  }
};
struct FleetTimeline {
  FleetTime length{1'000'000};  // of a part; the last one may end before
  FleetTime end;
  std::vector<TimelinePart> parts;
};

// Why one job waited: for whom, and for what once it was the head.
struct WaitStory {
  FleetTime behind, short_of, scattered, delayed;  // sum to its wait, from when it was eligible
  struct Head {
    std::uint32_t job = 0;
    FleetTime time;  // it stood behind that head
  };
  std::vector<Head> heads;     // in order of time
  std::uint32_t ahead = 0;     // jobs before it as it came
  std::int64_t free_then = 0;  // accelerators free as it came
};

// Reads of jobs from a store that they share, those that came to their ends.
struct StoreReads {
  std::int64_t count = 0;
  std::int64_t most = 0;  // at a time
  FleetTime alone, took;  // together: as each would be alone; as they were
  FleetTime longest;
  GpuMicros waited = 0;  // of accelerators that were held, longer than alone
};

struct FleetRecord {
  std::vector<JobRecord> jobs;
  FleetUse use;
  FleetPower power;
  FleetTimeline timeline;
  std::vector<BreakdownCount> breakdowns;  // by kind
  std::vector<IncidentCount> incidents;    // in the order of the question
  std::vector<SizedUse> sized;             // of jobs that may have several sizes
  StoreReads reads;
  LemonCount lemons;
  GangParts gangs;
  FleetTime last_end;
  std::uint64_t events = 0;  // instants at which something happened
  std::optional<WaitStory> story = {};
  std::int64_t most_waiting = 0;
  bool stopped = false;  // Ctrl-C ended it: jobs that run have no end
  bool cut = false;      // the horizon did
  bool ends_early() const { return stopped || cut; }
};

}  // namespace orrery
