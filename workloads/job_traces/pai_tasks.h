// SPDX-License-Identifier: Apache-2.0
// Reads tasks of Alibaba's PAI of 2020 as jobs.
#pragma once

#include <string>
#include <string_view>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// The ten columns of pai_task_table.csv (cluster-trace-gpu-v2020), with their names in the first
// line or without, as the table is published. What a task plans is that of each of its instances.
// Whole GPUs: the task is a gang of all. A part of one: each instance is a job, called task.1,
// task.2, ... Parts of several GPUs (150%) are rounded up to whole ones. The start of a task is its
// submission. The queue is the type of GPU.
// Tasks without GPUs and such as have no start or end (a start of 0 is none) are left out. Error:
// as parse_jobs, and an end before the start, a status that is not known, more than 10^5 instances.
ClusterJobs parse_pai_tasks(std::string_view text, const std::string& file);

// Whether a line is a row of that table.
bool is_pai_task(std::string_view line);

}  // namespace orrery
