// SPDX-License-Identifier: Apache-2.0
// Knows how jobs of a schedule stand in its question: by name, or as what their files held.
#pragma once

#include "hw_models/price/grid_series.h"
#include "sim/base/json/json.h"
#include "workloads/cluster_job/cluster_job.h"
#include "workloads/cluster_job/job_mix.h"

namespace orrery {

// A trace: the name of an entry or of a file, {"name", "text"} of what a file held, or {"file",
// "hash"} of one that is too large to stand in a question. Error: a file that has changed since.
ClusterJobs traced_jobs(const JsonValue& at);

// A mix: a name, a file, itself, or {"name", "text"} of what a file held.
JobMix mix_of_jobs(const JsonValue& at);

// Hours of a grid: a file, or {"name", "text"} of what it held.
GridSeries grid_of(const JsonValue& at);

// The question with the contents of all files that it names in place of their names, so that it
// asks the same elsewhere and later; of a trace of more than 16 MiB the hash stands beside its
// name. Names of the catalogue stay names.
JsonValue with_jobs_inline(const JsonValue& settings);

// Without its jobs, which may be many, and with them again.
JsonValue without_jobs(const JsonValue& settings);
JsonValue with_jobs_of(const JsonValue& question, const JsonValue& settings);

}  // namespace orrery
