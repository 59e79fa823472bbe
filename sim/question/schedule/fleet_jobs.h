// SPDX-License-Identifier: Apache-2.0
// Reads the jobs of a shared cluster: traces, mixes that are drawn, trainings, served models, RL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/colocation.h"
#include "sim/engine/fleet/fleet_question.h"
#include "sim/question/rules/entry_dependencies.h"
#include "sim/question/schedule/rl_entry.h"
#include "sim/question/schedule/service_entry.h"
#include "sim/question/schedule/training_entry.h"
#include "workloads/cluster_job/cluster_job.h"
#include "workloads/cluster_job/job_mix.h"

namespace orrery {

// What an entry says of all of its jobs.
struct EntryRank {
  std::string queue;  // empty: that of each job
  std::int16_t priority = 0;
  bool preemptible = true;
  std::uint16_t within = 0;  // as ClusterJob::within: of FleetJobs::within
  std::uint16_t uses = 0;    // as ClusterJob::uses: of FleetJobs::uses
  // After its submission a job is due; or beyond its limit, by a time or a share of the limit.
  std::optional<FleetTime> deadline = {}, slack = {};
  std::optional<double> slack_share = {};
  bool has_deadline() const { return deadline || slack || slack_share; }
};

struct TracedJobs {
  ClusterJobs list;
  EntryRank rank;
};

// Jobs that are drawn anew with each seed, from a Monday at 0:00 on.
struct DrawnJobs {
  JobMix mix;
  double per_day = 0;
  EntryRank rank;
};

struct FleetJobs {
  std::vector<TracedJobs> traces;
  std::vector<DrawnJobs> mixes;
  std::vector<FleetTraining> trainings;
  std::vector<EntryRank> training_ranks;  // one each
  std::vector<FleetServedModel> served;
  std::vector<BatchInference> batches;
  std::vector<PostTraining> post_trainings;
  std::vector<EntryRank> served_ranks, batch_ranks, post_training_ranks;  // one each
  // By ClusterJob::work: recorded lengths, then what trainings, replicas and batches consist of.
  std::vector<JobWork> works;
  std::vector<std::vector<WorkSize>> sizes;  // by ClusterJob::sizes - 1
  // Levels under one group of which jobs must stand, by ClusterJob::within - 1; as the first entry
  // names each.
  std::vector<JsonValue> within;
  std::vector<DeviceUse> uses;  // of a GPU, by ClusterJob::uses - 1
  EntryDependencies dependencies;
  std::optional<FleetTime> days;  // jobs of the first so many
  std::string name;               // for people: "philly and 2 trainings"
  bool draws() const { return !mixes.empty(); }
  bool has_deadlines() const;  // some jobs do
  bool has_parts() const;      // some ask for a part of a GPU
  bool several_kinds() const {
    return traces.size() + mixes.size() + trainings.size() + served.size() + batches.size() +
               post_trainings.size() >
           1;
  }
  std::vector<FleetService> services() const;  // of the served models
};

// What all entries share.
struct FleetJobsCase {
  SortedJson cluster;                         // as settings name it
  std::optional<ReliabilityProfile> profile;  // none: nothing fails
  std::optional<StoreRates> store;            // none: each job has one as if it were alone
  Seconds save_interval;                      // of jobs that say none
  std::int64_t recorded_milliwatts = 0;       // of an accelerator that they hold
  ReplicaScale scale = ReplicaScale::expected;
  std::optional<FleetTime> horizon;    // the run ends then
  ServedReplicas* replicas = nullptr;  // of served models and batches
};
// Settings: trace, jobs, days. Errors: entries, an id twice, a mix without days, jobs that come
// after such as are not there, or in a circle.
FleetJobs read_fleet_jobs(const JsonValue& settings, const FleetJobsCase& with,
                          Catalogues& catalogues, int threads);

// Those whose waits and completions count.
ClusterJobs without_replicas(const ClusterJobs& list, const FleetJobs& jobs);

// Where a training stands in a list; nothing: it comes after its days.
std::optional<std::size_t> place_of(const FleetTraining& training, const ClusterJobs& list);

// The list of a seed, in order of submission.
ClusterJobs jobs_of_seed(const FleetJobs& jobs, std::uint64_t seed);

}  // namespace orrery
