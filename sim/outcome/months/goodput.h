// SPDX-License-Identifier: Apache-2.0
// Tells what months of training lose to failures, checkpoints and waiting, in closed form.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/reliability.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/units/units.h"

namespace orrery {

// A value with the ends of its 90% range.
template <class Q>
struct Ranged {
  Q value{}, low{}, high{};
};
template <class Q>
constexpr Ranged<Q> exactly(Q value) {
  return {.value = value, .low = value, .high = value};
}

// All failures of one kind in a job. They come at random, independently of each other.
struct FailureClass {
  std::string name;
  Ranged<Hertz> rate;  // of the whole job
  BlastRadius blast = BlastRadius::host;
  bool job_wide = false;  // not of a part of the machine: losing a replica does not help
  // Share of them that take their blast radius out of use for `repair` (exponential, mean).
  Ranged<double> removed;
  Ranged<Seconds> repair;
  Ranged<Seconds> latency;  // computed in vain before they are noticed
  Ranged<Seconds> outage;   // nothing runs for so long, besides the recovery
  // Infant mortality: `rate` is that at the start of the run and falls by e in so long. 0:
  // constant.
  Seconds decay;
};

// What a write takes of one accelerator's share of its host while it goes on.
struct CheckpointFlow {
  BytesPerSecond network;  // by the NICs that training uses
  BytesPerSecond memory;   // of the host's memory
};

// Where checkpoints go. A save stops the job for `stall`; the checkpoint counts `write` later.
struct CheckpointTier {
  std::string name;
  Seconds interval;  // of running time between saves; 0: the optimal one
  Seconds stall, write, read;
  CheckpointFlow flow;
  double slowed = 0;       // share of its speed that the job loses to `flow` for as long as `write`
  Seconds least_interval;  // that is chosen
  BlastRadius survives = BlastRadius::site;  // the largest failure after which it can be read
  Bytes size;                                // of one checkpoint of the whole job; 0: not known
  BytesPerSecond bandwidth;  // that writes and reads it, of the whole job; 0: not known
};

// What the job's layout is placed in and what a spare is: hosts, or NVLink domains of many hosts.
struct UnitPlan {
  std::string name = "host";
  std::int64_t count = 1;  // in the job, spares not counted
  std::int64_t hosts = 1;  // of one unit
  std::int64_t slack = 0;  // of those, how many the layout can lose before the unit is lost to it
  std::int64_t leaf = 1;   // units below one leaf switch
};

// Throughput of a job that has been planned anew for fewer accelerators, both as shares of all.
struct ThroughputPoint {
  double gpus = 0, throughput = 0;
};
// Whole data-parallel replicas leave the job and come back; their peers hold the state.
struct ElasticPlan {
  std::int64_t replicas = 1;
  Seconds stall;                            // of all others after a failure, besides its detection
  Seconds rejoin;                           // until the replica is back where a spare is at hand
  std::vector<ThroughputPoint> throughput;  // sorted; empty: proportional to the accelerators
};

struct GoodputCase {
  std::int64_t gpus = 1;
  UnitPlan units;
  std::vector<FailureClass> failures;
  Ranged<Seconds> detection, diagnosis, start, warm_up;  // `start` at this scale
  Ranged<Hertz> maintenance_rate;                        // planned, saved before: no work is lost
  Ranged<Seconds> maintenance;                           // of one, `start` and `warm_up` follow
  // Shares of running time; what the step time already holds must not be here again.
  Ranged<double> stragglers, variation, data_loading, evaluation;
  std::vector<CheckpointTier> tiers;  // by `survives`; the last survives everything
  std::int64_t spares = 0;            // units that wait
  double spare_probability = 0;   // above 0: `spares` were chosen for it, ranges choose them anew
  std::int64_t repair_crews = 0;  // repairs at a time; 0: as many as there are failures
  std::optional<ElasticPlan> elastic;
  Seconds step = seconds(1);
  double tokens_per_step = 0, tokens = 0;
  bool whole_steps = false;  // saves come after round numbers of steps, as an operator sets them
  Seconds run;               // length that infant mortality is averaged over; 0: the start
  // For remedies: what a copy to host memory and one to a peer's take, data-parallel replicas,
  // failures that evicting a few bad hosts would save.
  Seconds snapshot, peer_write;
  CheckpointFlow peer_flow;
  double peer_slowed = 0;
  std::int64_t replicas = 1;
  Ranged<double> lemon_share;
  double start_measured = 0;  // most accelerators of which a start is published; 0: not known
};

// What wall-clock time is spent on. `effective` is what an undisturbed run would need.
enum class TimeShare : std::uint8_t {
  effective,
  checkpoint,          // stalls of saves
  checkpoint_traffic,  // steps that writes slow
  lost_work,           // since the last checkpoint
  silent_corruption,   // computed before corruption was noticed
  detection,
  diagnosis,
  outage,
  restart,  // start and reading the checkpoint
  warm_up,
  waiting,  // for spares or repair
  shrunk,   // replicas that are missing
  maintenance,
  data_loading,
  evaluation,
  stragglers,
  variation,
};
inline constexpr int time_share_count = enumerator_count<TimeShare>();
std::string_view to_text(TimeShare);
using TimeShares = std::array<double, time_share_count>;  // sums to 1
inline double share_of(const TimeShares& shares, TimeShare which) {
  return shares[static_cast<std::size_t>(which)];
}
inline double& at(TimeShares& shares, TimeShare which) {
  return shares[static_cast<std::size_t>(which)];
}
// Productive time over wall-clock time: running slowly counts as running (Meta's ETTR,
// arXiv 2410.21680).
double effective_time_ratio(const TimeShares& shares);

struct TierUse {
  std::string name;  // "peers": of an elastic job
  Seconds interval;  // infinite: it never pays
  Hertz failures;    // that fall back to it
  Seconds lost;      // work lost by one of them, on average
  // Of one save: what stops the job, what goes on behind its steps, its bytes and their rate (0 of
  // "peers", and where they are not known). Mean load of the store: size / interval.
  Seconds stall, write;
  Bytes size;
  BytesPerSecond bandwidth;
  double slowed = 0;  // share of its speed that the job loses during a write
};
struct InterruptionRate {
  std::string name;
  double per_day = 0;
};

struct Goodput {
  TimeShares shares{};
  double effective = 0;   // progress over that of an undisturbed run
  double time_ratio = 0;  // effective_time_ratio(shares)
  // Llama 3's "effective training time" (arXiv 2407.21783): as time_ratio, of the time without
  // planned maintenance. Slow steps, evaluation and waits for data count as training.
  double effective_training_time = 0;
  Seconds mean_time_to_failure;                 // of the job; infinite without failures
  std::vector<InterruptionRate> interruptions;  // in the order of the classes
  Seconds lost_per_failure;
  std::vector<TierUse> tiers;
  double units_out = 0;  // under repair on average
  // Accelerators over the most of which a start is published: above 1 the time of a start is
  // extrapolated, in proportion. 0: not known.
  double start_extrapolation = 0;
  double days = 0;  // for GoodputCase::tokens; 0 without; infinite: it never gets on
};

// Error that names the input: negative rates or times, shares outside [0, 1), no tier that survives
// everything, throughput that rises with fewer accelerators, repair crews that cannot keep up.
void check_goodput(const GoodputCase& input);

// Failures are a Poisson process in all time but maintenance and waiting; those during a recovery
// restart it; work since the newest surviving checkpoint is lost. Exact for one tier (then it is
// Daly's, FGCS 2006, with delayed commits and mixed recoveries); further tiers take the cheaper
// ones as a slower machine. Microseconds, whatever the number of accelerators (bench_parts:
// goodput_of_job).
Goodput goodput(const GoodputCase& input);

// What the result rests on, as sentences for a reader: checkpoints with their size, interval and
// rates, starts and stores beyond any that is published, spot hosts, waiting.
std::vector<std::string> goodput_notes(const GoodputCase& input, const Goodput& result);

// The interval that loses least: z of ln(1 - z) + z + rate * stall = 0, over the rate. Young's
// sqrt(2 stall / rate) in the limit of few failures. Infinite when nothing fails.
Seconds optimal_interval(Hertz rate, Seconds stall);

// Chances that 0, 1, 2, .. units are out at a time, where they fail whatever the job does: those of
// an elastic job, which never waits.
std::vector<double> units_out_distribution(const GoodputCase& input);

// Of a job that is not elastic: it waits while more units are out than it has spares, and nothing
// fails while it waits. Exact for losses of equal size; with slack the mean field of many units.
struct SpareUse {
  double waiting = 0;    // share of the time outside maintenance
  double units_out = 0;  // under repair on average
};
SpareUse spare_use(const GoodputCase& input);

// The fewest spares with which the job has what it needs at least this share of the time (elastic:
// all of its replicas).
std::int64_t spares_needed(const GoodputCase& input, double probability);

struct GoodputRange {
  Ranged<double> effective, time_ratio, days;
  Ranged<Seconds> mean_time_to_failure;
};
// 5 to 95% of what `draws` random picks within the inputs' ranges give; the same on any number of
// threads.
GoodputRange goodput_range(const GoodputCase& input, std::uint64_t seed = 1, int threads = 1,
                           int draws = 400);

// Meta's expected ETTR (arXiv 2410.21680) of a job on so many hosts, first order in its losses.
struct ExpectedRatio {
  double hosts = 1;
  Hertz failure_rate;  // of one host
  Seconds restart;     // u0
  Seconds interval;    // between checkpoints
  Seconds write;       // stall of one
};
double expected_time_ratio(const ExpectedRatio& input);

}  // namespace orrery
