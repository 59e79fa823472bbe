// SPDX-License-Identifier: Apache-2.0
// Reads jobs from texts in the Standard Workload Format.
#pragma once

#include <string>
#include <string_view>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// As parse_jobs() has it (job_trace.h).
ClusterJobs parse_swf_jobs(std::string_view text, const std::string& file);

}  // namespace orrery
