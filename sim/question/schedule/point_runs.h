// SPDX-License-Identifier: Apache-2.0
// Runs points of a schedule on the jobs of each seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "sim/question/schedule/schedule.h"

namespace orrery {

// Lists of jobs by seed, of points that have the same jobs: each is drawn when it is first asked
// for, by any thread.
class JobLists {
 public:
  JobLists(std::uint64_t seed, std::int64_t seeds) : seed_(seed), seeds_(seeds) {}
  const std::shared_ptr<const ClusterJobs>& of(const FleetJobs& jobs, std::size_t run);

 private:
  struct Drawn {
    std::once_flag once;
    std::shared_ptr<const ClusterJobs> list;
  };
  std::uint64_t seed_;
  std::int64_t seeds_;
  std::mutex mutex_;
  std::map<const FleetJobs*, std::vector<std::unique_ptr<Drawn>>> known_;
};

class PointRuns {
 public:
  // All must outlive it. Points, seeds, what is watched and the limit of time are those of `out`;
  // the time counts from here on.
  PointRuns(Scheduled& out, PointReader& reader, const ScheduleWith& with)
      : out_(out), reader_(reader), with_(with), lists_(out.seed, out.seeds) {}
  // Seeds `from` to `to` - 1 of some points, each measured in its place. Under a limit of time all
  // points get a seed before any gets the next one; what was not done by then is not measured.
  void run(const std::vector<std::size_t>& points, std::size_t from, std::size_t to);
  const ClusterJobs& list(const SchedulePoint& point, std::size_t run) {
    return *lists_.of(*point.asked.jobs, run);
  }
  // Ctrl-C, or the limit of time.
  bool ends_now() const;
  // Of its first seed.
  std::shared_ptr<const ClusterJobs> first_list(const SchedulePoint& point) {
    return lists_.of(*point.asked.jobs, 0);
  }

 private:
  struct Done;
  FleetRecord run_one(const SchedulePoint& point, std::size_t run, std::size_t number,
                      ReplicaStops& stops);
  Done have_run(const SchedulePoint& point, std::size_t run, std::size_t number);
  void take(SchedulePoint& point, std::size_t run, Done& done);
  void take_unfinished(const std::vector<std::size_t>& points, std::vector<Done>& done);
  void tell_begun(std::size_t number);
  void tell_reached(std::size_t number, ScheduleProgress progress);
  void tell_done(std::size_t number);

  Scheduled& out_;
  PointReader& reader_;
  const ScheduleWith& with_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex telling_;
  std::int64_t done_ = 0;
  std::set<std::size_t> under_way_;
  JobLists lists_;
};

}  // namespace orrery
