// SPDX-License-Identifier: Apache-2.0
// Knows what became of elastic jobs and of the accelerator-time of their cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/jobs/job_work.h"

namespace orrery {

struct ElasticJobRecord {
  FleetTime start, end;       // start: the first place
  std::int32_t restarts = 0;  // places after the first
  GpuMicros held = 0;         // to its end
};

// From the first submission to the last end, in accelerators x picoseconds; the other parts sum to
// `all`.
struct ElasticGpuTime {
  GpuPicos all = 0;
  GpuPicos useful = 0;  // steps that count, as fast as the job is where nobody meets it
  GpuPicos slowed = 0;  // what they took longer, and what rounds an end up
  GpuPicos restart = 0;
  GpuPicos lost = 0;  // steps that were begun on a place and not ended there
  GpuPicos idle = 0;  // held by nobody: also what an ended job leaves, until the next round
};

struct ElasticRecord {
  std::vector<ElasticJobRecord> jobs;  // in the order of the list
  ElasticGpuTime gpu_time;
  FleetTime last_end;
  std::int64_t rounds = 0;  // in which something was decided
};

}  // namespace orrery
