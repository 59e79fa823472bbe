// SPDX-License-Identifier: Apache-2.0
// Knows what is asked of a shared cluster: its shape, a policy, what jobs consist of, what breaks.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/engine/elastic/elastic_question.h"
#include "sim/engine/jobs/breakdowns.h"
#include "sim/engine/jobs/fleet_event.h"
#include "sim/engine/jobs/job_work.h"
#include "sim/engine/jobs/link_sharing.h"
#include "sim/engine/jobs/policy.h"
#include "sim/engine/power/fleet_hours.h"
#include "sim/engine/power/power_budget.h"
#include "sim/engine/power/power_feed.h"
#include "sim/engine/slurm/slurm_passes.h"
#include "topologies/slots.h"

namespace orrery {

// What a job sends over the links above the groups of one level (a leaf group's uplinks) while it
// runs on a place. `load`: of a group's links if all of its hosts sent as those of the job do; 0:
// nothing, or more than enough links for all.
// Or over the links of leaf switches onto which its flows are hashed: of all links of a switch.
struct TrunkTraffic {
  double busy = 0;            // share of a step in which it sends and waits for it
  double load = 0;            // meanwhile
  double hidden = 0;          // in the mean, besides, that nobody waits for
  std::int32_t uplinks = 0;   // hashed: links of a switch, the switches of a group, and the queue
  std::int32_t switches = 1;  // pairs of a flow, each hashed by itself
  std::int32_t paths = 1;
};

struct PlacePrice {
  std::int64_t step_ps = 0;  // alone; at least that of the kind of work, which is well placed
  std::vector<TrunkTraffic> trunks = {};  // by level of the shape; empty: it meets nobody
};

// A job on a part of an accelerator: what it asks of it (ClusterJob::uses), and the part.
struct PartUser {
  std::uint16_t uses = 0;
  std::int32_t milli = 0;
  friend auto operator<=>(const PartUser&, const PartUser&) = default;
};

// Says what a step of a job takes on the hosts that it got. Asked by several runs at a time.
class PlacePrices {
 public:
  virtual ~PlacePrices() = default;
  virtual PlacePrice price(std::uint16_t work, const Grants& place) = 0;
  // Speeds of jobs on one accelerator, each over its speed alone on all of it: above 0, at most 1.
  // Those of which nobody knows what they ask (uses 0) run as if they were alone.
  virtual std::vector<double> speeds(const std::vector<PartUser>& users) {
    return std::vector<double>(users.size(), 1.0);
  }
};

// Accelerators that a job may get, and its kind of work on so many.
struct WorkSize {
  std::int32_t gpus = 1;
  std::uint16_t work = 0;
  std::int64_t steps = 0;  // of the whole job there; 0: as many as on any other
};

// Who decides, at every multiple of so long. Six minutes: Gavel (Narayanan et al., OSDI 2020, 5).
struct FleetRounds {
  RoundRule rule = RoundRule::goodput;
  FleetTime every{INT64_C(360'000'000)};
};

// Of rules that decide at times of their own.
struct FleetLoops {
  FleetRounds rounds;
  SlurmSettings slurm = {};
};

struct FleetQuestion {
  SlotShape shape;
  FleetPolicy policy;
  std::uint64_t seed = 0;                    // of random places and of what breaks
  std::vector<JobWork> works = {JobWork{}};  // by ClusterJob::work; the first: recorded lengths
  PlacePrices* prices = nullptr;             // of kinds that are priced
  // By ClusterJob::sizes - 1, ascending. What it asks for is one.
  std::vector<std::vector<WorkSize>> sizes = {};
  std::vector<std::int32_t> within = {};  // levels of the shape, by ClusterJob::within - 1
  FleetLoops loops = {};
  std::vector<QueueQuota> quotas = {};        // by queue; fewer: the others have none
  LinkMeeting meeting = LinkMeeting::random;  // how jobs meet on links that they share
  BreakdownPlan breakdowns = {};              // needs hosts: no pool
  std::int64_t store_bytes_per_s = 0;         // all that read get so much; 0: as if each were alone
  std::int64_t idle_milliwatts = 0;           // of an accelerator that nobody holds
  std::int64_t power_limit_milliwatts = 0;    // of all accelerators with their hosts; 0: none
  FeedTree feeds = {};                        // of single halls, rows and racks: needs hosts
  PowerPolicy power_policy = PowerPolicy::admit;
  std::vector<std::optional<CapCurve>> cap_curves = {};  // by work; none: it cannot be capped
  PowerThresholds thresholds = {};                       // of that policy
  FleetHours hours = {};                                 // what changes by the hour
  FleetTime horizon = fleet_never;                       // the run ends then, whoever runs
  std::optional<std::uint32_t> watch = {};               // the job whose wait is to be told
  // Asked with the time that was reached: every few thousand events, or at every one where a rule
  // decides at times of its own. True ends the run.
  std::function<bool(FleetTime)> stop = {};
  // Called as often, with how many jobs wait.
  std::function<void(FleetTime, std::int64_t waiting)> reached = {};
  // Called with all that happens, in order of time.
  std::function<void(const FleetEvent&)> tell = {};
  // Called after the decisions of each instant, for laws.
  std::function<void(FleetTime, const Slots&)> look = {};
};

// Hosts may go out under those that run.
inline bool may_lose_hosts(const FleetQuestion& question) {
  return !question.breakdowns.kinds.empty() || does_something(question.breakdowns.incidents);
}

}  // namespace orrery
