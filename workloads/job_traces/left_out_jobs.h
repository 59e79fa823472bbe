// SPDX-License-Identifier: Apache-2.0
// Counts rows of recorded runs that are no jobs here.
#pragma once

#include <cstdint>

#include "workloads/job_traces/job_list_maker.h"

namespace orrery {

struct LeftOutJobs {
  const char* noun;  // of a row: job, task
  std::int64_t without_gpus = 0, without_times = 0;
  void note(JobListMaker& maker) const {
    maker.note(without_gpus, noun, "without GPUs was left out", "without GPUs were left out");
    maker.note(without_times, noun, "without a start or an end was left out",
               "without a start or an end were left out");
  }
};

}  // namespace orrery
