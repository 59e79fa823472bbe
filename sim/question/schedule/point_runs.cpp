// SPDX-License-Identifier: Apache-2.0
// Draws lists of jobs once, and runs points on them side by side.
#include "sim/question/schedule/point_runs.h"

#include <algorithm>

#include "sim/base/parallel.h"

namespace orrery {

const ClusterJobs& JobLists::of(const FleetJobs& jobs, std::size_t run) {
  std::vector<ClusterJobs>& lists = known_[&jobs];
  if (lists.empty()) lists.resize(jobs.draws() ? static_cast<std::size_t>(seeds_) : 1);
  ClusterJobs& list = lists[std::min(run, lists.size() - 1)];
  if (list.jobs.empty()) list = jobs_of_seed(jobs, seed_ + run);
  return list;
}

FleetRecord PointRuns::run_one(const SchedulePoint& point, std::size_t run) {
  const ClusterJobs& jobs = list(point, run);
  FleetQuestion question = point.asked.question;
  question.seed = out_.seed + run;
  question.prices = &reader_.prices(point.asked);
  question.quotas = read_quotas(out_.settings, jobs);
  if (out_.watched && run == 0) question.watch = static_cast<std::uint32_t>(*out_.watched);
  return run_fleet(jobs, question);
}

void PointRuns::tell_one_done() {
  const std::scoped_lock lock(telling_);
  ++done_;
  if (with_.progress)
    with_.progress(done_, out_.seeds * static_cast<std::int64_t>(out_.points.size()));
}

void PointRuns::run(const std::vector<std::size_t>& points, std::size_t from, std::size_t to) {
  // Lists and prices are made before threads share them.
  for (const std::size_t p : points) {
    reader_.prices(out_.points[p].asked);
    for (std::size_t run = from; run < to; ++run) list(out_.points[p], run);
  }
  const std::size_t seeds = to - from;
  std::vector<FleetMeasures> measures(points.size() * seeds);
  std::vector<std::uint8_t> done(measures.size(), 0);
  parallel_for(measures.size(), with_.threads, [&](std::size_t i) {
    SchedulePoint& point = out_.points[points[i / seeds]];
    const std::size_t run = from + i % seeds;
    FleetRecord record = run_one(point, run);
    measures[i] = fleet_measures(list(point, run), record);
    done[i] = !record.stopped || run == 0 ? 1 : 0;
    if (run == 0) point.record = std::move(record);
    tell_one_done();
  });
  for (std::size_t i = 0; i < measures.size(); ++i) {
    SchedulePoint& point = out_.points[points[i / seeds]];
    out_.stopped = out_.stopped || done[i] == 0 || point.record.stopped;
    if (done[i] == 0) continue;
    point.measures.push_back(std::move(measures[i]));
    ++out_.runs;
  }
}

}  // namespace orrery
