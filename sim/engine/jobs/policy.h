// SPDX-License-Identifier: Apache-2.0
// Knows the rules by which a cluster decides: who is next, who may pass, and where a gang goes.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/fleet_time.h"

namespace orrery {

// Who is next. sjf: the shortest limit; priority: the highest; las: whoever has held little so far
// (ServiceQueues); deadline: whoever is due first, those without a deadline last; of equals the
// older.
enum class JobOrder : std::uint8_t { fifo, sjf, priority, las, deadline };
inline constexpr auto job_order_text =
    enum_names<JobOrder>({"fifo", "sjf", "priority", "las", "deadline"});

// Who may pass a head that has no place. block: nobody. easy: whoever leaves the start that the
// head is promised as it is (Lifka, The ANL/IBM SP Scheduling System, 1995). any: whoever has a
// place. slurm: as its loops decide, which place gangs by themselves (SlurmPasses). rounds: all
// jobs get their sizes and places anew in rounds (RoundLoop). conservative: whoever leaves the
// start that each one before it is promised (ConservativeLoop). gang_timeout: whoever has a place,
// and gangs hold what is free until they are whole or give up (GangLoop).
enum class JobFit : std::uint8_t { block, easy, any, slurm, rounds, conservative, gang_timeout };
inline constexpr auto job_fit_text =
    enum_names<JobFit>({"block", "easy", "any", "slurm", "rounds", "conservative", "gang-timeout"});

// Where a gang of n goes. pool: anywhere, hosts do not count. All others take n / 8 hosts that are
// free as a whole (8: accelerators of a host) and the rest on one host.
// pack: hosts of lowest number, the rest on the fullest host that has room. spread: the rest on the
// emptiest. least-level: under the fewest switches, inside the fullest group that has room; the
// rest as pack has it. fragmentation: as pack, but the rest, and parts of accelerators, where what
// the usual jobs cannot use grows least (FragmentTable). least-contention: as least-level, or near
// that, where jobs lose least to each other (PlaceJudge). random: any.
enum class JobPlace : std::uint8_t {
  pool,
  pack,
  spread,
  least_level,
  fragmentation,
  least_contention,
  random,
};
inline constexpr auto job_place_text = enum_names<JobPlace>(
    {"pool", "pack", "spread", "least-level", "fragmentation", "least-contention", "random"});

// How long a job that was stopped and waits again is kept back first.
struct RequeueDelay {
  FleetTime first;  // 0: it is not
  FleetTime most;   // doubled for each stop in a row, up to this; below `first`: it stays as it is
};

// Whether jobs that ask for parts of an accelerator share one. never: each has one of its own.
// best_fit: a part goes to the shared accelerator with the least room that suffices, of equals on
// the lowest host; where none has room, one is shared from then on that the place's rule finds. The
// place `fragmentation` chooses among all of these by itself.
enum class GpuShare : std::uint8_t { never, best_fit };
inline constexpr auto gpu_share_text = enum_names<GpuShare>({"never", "best-fit"});

struct FleetPolicy {
  JobOrder order = JobOrder::fifo;
  JobFit fit = JobFit::block;
  JobPlace place = JobPlace::pack;
  bool blocks = false;  // slurm: under as few of the innermost groups as it takes, not of leaves
  // A head of higher priority stops others that have run for so long: of the lowest priority first
  // those that began last. They save their whole steps first.
  bool preempts = false;
  FleetTime preempt_after;
  // Whoever is stopped for others saves before it leaves, if that takes no longer than this; else
  // what it did since its newest save is lost. None: it saves in no time, and pays as it starts
  // again.
  std::optional<FleetTime> grace = {};
  RequeueDelay requeue;
  // gang_timeout: until a gang that is not whole gives back what it holds. Five minutes: Kueue's
  // waitForPodsReady.timeout (kueue.sigs.k8s.io, release 0.14).
  FleetTime gang_timeout{INT64_C(300'000'000)};
  bool defragments = false;  // running jobs move where that pays (DefragmentPass)
  // las: accelerator-time with which a job leaves the first queue: 16 GPU-hours, as in the
  // evaluation of Pollux (Qiao et al., OSDI 2021, 5.3).
  GpuMicros first_queue = INT64_C(16) * 3'600 * 1'000'000;
  GpuShare share = GpuShare::never;
};

// What the jobs of one queue may hold at a time.
struct QueueQuota {
  std::int64_t gpus = INT64_MAX;
  bool borrows = false;  // beyond that what nobody else asks for, as jobs of the lowest priority
};

// A gang that stands under one group of a level of the shape; no_level: anywhere.
inline constexpr std::int32_t no_level = -1;

}  // namespace orrery
