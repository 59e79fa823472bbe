// SPDX-License-Identifier: Apache-2.0
// Knows a mix of jobs that tests draw from, and how they draw.
#pragma once

#include <filesystem>
#include <string>

#include "sim/base/json/json.h"
#include "workloads/cluster_job/job_mix_file.h"

namespace orrery::mixes {

inline const std::filesystem::path catalog = ORRERY_SOURCE_DIR "/workloads/catalog";

inline FleetTime days(double number) { return {static_cast<std::int64_t>(number * 8.64e10)}; }

inline std::size_t place(JobFate fate) { return static_cast<std::size_t>(fate); }

// So many jobs at the mix's own rate.
inline ClusterJobs drawn(const JobMix& mix, double jobs, std::uint64_t seed) {
  const double rate = mix.arrivals.jobs_per_day;
  return draw_jobs(mix, days(jobs / rate), rate, seed);
}

inline JobMix parsed(const std::string& text) {
  return read_job_mix(JsonValue::parse(text, "m.json"), "m");
}

inline const std::string own_mix =
    R"({"title": "A laboratory",
  "arrivals": {"jobs_per_day": 400, "by_hour": [1,1,1,1,1,1,1,2,4,6,6,6,6,6,6,6,6,5,4,3,2,2,1,1],
    "by_weekday": [5,5,5,5,5,1,1], "day_swing": {"edges": [0.5, 1.5], "shares": [1]}},
  "queues": ["research", "product"], "users": [4, 2, 1],
  "limits": [{"up_to_s": 600, "factor": {"edges": [2, 10], "shares": [1]}}, {"factor": 1.5}],
  "parts": [
    {"share": 9, "gpus": [[1, 3], [8, 1]], "queues": [3, 1],
     "length_s": {"median": 600, "mean": 4000, "largest": 604800}},
    {"share": 2, "fate": "failed", "gpus": 8,
     "length_s": {"edges": [0, 60, 600], "shares": [3, 1]}},
    {"share": 1, "fate": "cancelled", "gpus": 64, "queues": [0, 1],
     "length_s": {"edges": [60, 86400], "shares": [1], "means": [9000]}}
  ]})";

}  // namespace orrery::mixes
