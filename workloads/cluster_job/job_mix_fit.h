// SPDX-License-Identifier: Apache-2.0
// Fits a mix of jobs to a list of jobs.
#pragma once

#include "workloads/cluster_job/job_mix.h"

namespace orrery {

// Quantiles of the lengths of jobs of similar sizes that end alike: sizes are joined, from the
// smallest on, until there are 50 jobs. Within such a part lengths are taken to be independent of
// sizes, and jobs of each other. Rates of hours and weekdays are means; how far days, and hours of
// a day, swing about them is what they do beyond the noise of a Poisson process, where the list has
// a week of whole days. Limits are factors on lengths, by decades of these; a list whose limits all
// are its lengths has none. All is rounded to six digits. Error: no jobs.
JobMix fit_job_mix(const ClusterJobs& list);

}  // namespace orrery
