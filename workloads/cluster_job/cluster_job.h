// SPDX-License-Identifier: Apache-2.0
// Knows a job of a shared cluster as its scheduler sees it, and lists of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text/enum_names.h"
#include "sim/base/units/fleet_time.h"

namespace orrery {

inline constexpr std::int32_t whole_gpu = 1000;  // thousandths of an accelerator

// How a recorded job ended. Machines that fail are no part of it.
enum class JobFate : std::uint8_t { completed, failed, cancelled };
inline constexpr auto job_fate_text = enum_names<JobFate>({"completed", "failed", "cancelled"});

// A gang: all its GPUs start and end together. Or a part of one GPU, which others may share.
struct ClusterJob {
  FleetTime submit;  // since the first job of the list
  FleetTime length;  // from start to end, 0 or more: alone, well placed, nothing fails
  FleetTime limit;   // that the scheduler is told, at least `length`
  // After its submission it should have ended. fleet_never: at any time.
  FleetTime deadline = fleet_never;
  std::int32_t gpus = 1;   // at least 1
  std::int32_t queue = 0;  // of ClusterJobs::queues: a virtual cluster, a partition, a team
  std::int32_t user = -1;  // of ClusterJobs::users; -1: not known
  std::uint32_t row = 0;   // of its file, from 1 below the header
  JobFate fate = JobFate::completed;
  std::int16_t priority = 0;  // higher ones first, where the policy asks
  bool preemptible = true;    // by a higher one
  bool runs_now = false;      // as the list begins: it waited before
  std::uint16_t work = 0;     // of what it consists: the kinds of a question; 0: a recorded length
  std::uint16_t within = 0;   // one group of a level: the levels of a question, from 1; 0: anywhere
  std::uint16_t sizes = 0;    // that it may have: the lists of a question, from 1; 0: gpus alone
  std::uint16_t milli = 0;    // thousandths that it asks for of its one GPU; 0: all of its GPUs
  std::uint16_t uses = 0;     // what it asks of one GPU: the uses of a question, from 1; 0: unknown
  bool is_part() const { return milli != 0; }
};

// What it asks for, in thousandths of a GPU.
inline std::int64_t milli_gpus(const ClusterJob& job) {
  return job.is_part() ? job.milli : std::int64_t{job.gpus} * whole_gpu;
}
inline double gpus_asked(const ClusterJob& job) {
  return job.is_part() ? static_cast<double>(job.milli) / whole_gpu : job.gpus;
}

// When it is due; fleet_never: at any time.
inline FleetTime due(const ClusterJob& job) {
  return job.deadline == fleet_never ? fleet_never : job.submit + job.deadline;
}

// A job comes after another one: no rule looks at it before that has ended.
struct JobDependency {
  std::uint32_t job = 0, after = 0;  // places in the list
  bool any = false;  // however that ends; else one that does not complete cancels the job
  FleetTime think;   // so long after that end
};

// In order of submission, those of one instant in order of their rows.
struct ClusterJobs {
  std::string name;  // as it was asked for
  std::vector<ClusterJob> jobs;
  std::vector<std::string> ids;  // of each job, in order; empty: jobs are named by their rows
  std::vector<JobDependency> dependencies = {};  // in order of jobs, in no circle
  std::vector<std::string> queues = {"default"};
  std::vector<std::string> users;
  std::vector<std::string> notes;  // what was left out or set right while reading, once each
  // The first submission by the clock of the cluster, since 1970-01-01; nothing: not known.
  std::optional<FleetTime> began = {};
  std::string id_of(std::size_t job) const {
    return ids.empty() ? std::to_string(jobs[job].row) : ids[job];
  }
};

}  // namespace orrery
