// SPDX-License-Identifier: Apache-2.0
// Runs points of a schedule on the jobs of each seed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "sim/question/schedule/schedule.h"

namespace orrery {

// Lists of jobs by seed, of points that have the same jobs.
class JobLists {
 public:
  JobLists(std::uint64_t seed, std::int64_t seeds) : seed_(seed), seeds_(seeds) {}
  const ClusterJobs& of(const FleetJobs& jobs, std::size_t run);

 private:
  std::uint64_t seed_;
  std::int64_t seeds_;
  std::map<const FleetJobs*, std::vector<ClusterJobs>> known_;
};

class PointRuns {
 public:
  // All must outlive it. Points, seeds and what is watched are those of `out`.
  PointRuns(Scheduled& out, PointReader& reader, const ScheduleWith& with)
      : out_(out), reader_(reader), with_(with), lists_(out.seed, out.seeds) {}
  // Seeds `from` to `to` - 1 of some points, each measured in its place.
  void run(const std::vector<std::size_t>& points, std::size_t from, std::size_t to);
  const ClusterJobs& list(const SchedulePoint& point, std::size_t run) {
    return lists_.of(*point.asked.jobs, run);
  }

 private:
  FleetRecord run_one(const SchedulePoint& point, std::size_t run);
  void tell_one_done();

  Scheduled& out_;
  PointReader& reader_;
  const ScheduleWith& with_;
  std::mutex telling_;
  std::int64_t done_ = 0;
  JobLists lists_;
};

}  // namespace orrery
