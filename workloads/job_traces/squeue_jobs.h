// SPDX-License-Identifier: Apache-2.0
// Reads the jobs that run and wait now from what `squeue` of Slurm prints.
#pragma once

#include <string>
#include <string_view>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// What errors ask for. Fields have no width, so that none is cut; `-r` prints a line for each task
// of an array, whose list would be cut. Source: squeue(1) of Slurm,
// https://slurm.schedmd.com/squeue.html
inline constexpr const char* squeue_command =
    "squeue -a -r -t R,S,CF,PD -O "
    "\"JobArrayID:|,State:|,tres-alloc:|,tres-per-job:|,tres-per-node:|,tres-per-task:|,tres-per-"
    "socket:|,NumNodes:|,"
    "NumTasks:|,TimeLeft:|,SubmitTime:|,PendingTime:|,PriorityLong:|,Reason:|,Partition:|,"
    "UserName:|\"";

// As parse_jobs() has it (job_trace.h).
ClusterJobs parse_squeue_jobs(std::string_view text, const std::string& file);

}  // namespace orrery
