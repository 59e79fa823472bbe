// SPDX-License-Identifier: Apache-2.0
// Reads tasks of shared GPUs as jobs, from lists in the columns of Alibaba's openb.
#pragma once

#include <string>
#include <string_view>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// As parse_jobs() has it (job_trace.h).
ClusterJobs parse_openb_jobs(std::string_view text, const std::string& file);

}  // namespace orrery
