// SPDX-License-Identifier: Apache-2.0
// Reads job tables of SenseTime's Helios and of Acme of the Shanghai AI Laboratory.
#pragma once

#include <string>
#include <string_view>

#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// Columns job_id, gpu_num, state, submit_time, start_time, end_time, and perhaps user, vc and type;
// others are not read. Times are "2020-06-09 18:41:01", perhaps with a zone behind, which is the
// same in all rows. The queue is vc (Helios), else type (Acme: Pretrain, Evaluation, ...).
// Jobs without GPUs and such as have no start or no end are left out. Error: as parse_jobs, and an
// end before the start, a state that is not known.
ClusterJobs parse_helios_jobs(std::string_view text, const std::string& file);

}  // namespace orrery
