// SPDX-License-Identifier: Apache-2.0
// Runs elastic jobs on a cluster that decides in rounds.
#pragma once

#include <vector>

#include "sim/engine/elastic/elastic_question.h"
#include "sim/engine/elastic/elastic_record.h"
#include "workloads/cluster_job/elastic_job.h"

namespace orrery {

// Decides at multiples of the tick, of jobs submitted by then; what a job leaves in between stays
// free until the next one. `jobs` are in order of submission. Ends when all have. Errors: no jobs,
// one that asks for more than there is or than its application was measured on, least above most,
// hosts or accelerators below 1, a tick or slice below 1, a slowdown outside of 0 to below 10^6.
ElasticRecord run_elastic(const std::vector<ElasticJob>& jobs,
                          const std::vector<ElasticApplication>& applications,
                          const ElasticQuestion& question);

}  // namespace orrery
