// SPDX-License-Identifier: Apache-2.0
// Draws lists of jobs once, and runs points on them side by side.
#include "sim/question/schedule/point_runs.h"

#include <algorithm>

#include "sim/base/content_hash.h"
#include "sim/base/errors/interrupt.h"
#include "sim/base/parallel.h"

namespace orrery {

const std::shared_ptr<const ClusterJobs>& JobLists::of(const FleetJobs& jobs, std::size_t run) {
  Drawn* drawn = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    auto& lists = known_[&jobs];
    while (lists.size() < (jobs.draws() ? static_cast<std::size_t>(seeds_) : 1))
      lists.push_back(std::make_unique<Drawn>());
    drawn = lists[std::min(run, lists.size() - 1)].get();
  }
  std::call_once(drawn->once, [&] {
    drawn->list = std::make_shared<const ClusterJobs>(jobs_of_seed(jobs, seed_ + run));
  });
  return drawn->list;
}

// What a run came to; nothing where another process does it.
struct PointRuns::Done {
  std::optional<KeptRun> kept;
  std::vector<JobRecord> jobs;  // of the first seed
  bool cut_short = false;       // by Ctrl-C, or by the limit of time
};

bool PointRuns::ends_now() const {
  const auto limit = out_.search.time_limit;
  return interrupted() ||
         (limit &&
          std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count() >
              limit->si());
}

FleetRecord PointRuns::run_one(const SchedulePoint& point, std::size_t run, std::size_t number,
                               ReplicaStops& stops) {
  const ClusterJobs& jobs = list(point, run);
  FleetQuestion question = point.asked.question;
  question.seed = out_.seed + run;
  question.prices = &reader_.prices(point.asked);
  question.quotas = read_quotas(out_.settings, jobs);
  question.stop = [this](FleetTime) { return ends_now(); };
  if (point.watched_at && run == 0) question.watch = static_cast<std::uint32_t>(*point.watched_at);
  const FleetTime last = jobs.jobs.empty() ? FleetTime{} : jobs.jobs.back().submit;
  if (with_.progress)
    question.reached = [&](FleetTime now, std::int64_t waiting) {
      tell_reached(number, {.reached = now,
                            .end = question.horizon == fleet_never ? last : question.horizon,
                            .waiting = waiting});
    };
  ScheduleListener* listener = run == 0 ? with_.listener : nullptr;
  const bool serves = !point.asked.jobs->served.empty();
  if (listener != nullptr || serves)
    question.tell = [&stops, listener, serves](const FleetEvent& event) {
      if (serves) stops.take(event);
      if (listener != nullptr) listener->take(event);
    };
  return run_fleet(jobs, question);
}

void PointRuns::tell_begun(std::size_t number) {
  const std::scoped_lock lock(telling_);
  under_way_.insert(number);
}

void PointRuns::tell_reached(std::size_t number, ScheduleProgress progress) {
  const std::scoped_lock lock(telling_);
  if (number != *under_way_.begin()) return;  // one of them moves on evenly
  progress.done = done_;
  progress.most = out_.seeds * static_cast<std::int64_t>(out_.points.size());
  with_.progress(progress);
}

void PointRuns::tell_done(std::size_t number) {
  const std::scoped_lock lock(telling_);
  under_way_.erase(number);
  ++done_;
  if (with_.progress)
    with_.progress(
        {.done = done_, .most = out_.seeds * static_cast<std::int64_t>(out_.points.size())});
}

PointRuns::Done PointRuns::have_run(const SchedulePoint& point, std::size_t run,
                                    std::size_t number) {
  Done done;
  tell_begun(number);
  const auto make = [&]() -> std::optional<KeptRun> {
    const std::vector<FleetService> services = point.asked.jobs->services();
    ReplicaStops stops(services, list(point, run));
    FleetRecord record = run_one(point, run, number, stops);
    KeptRun kept{.measures = fleet_measures(list(point, run), record, services, stops)};
    kept.measures.power.bill = energy_bill(*point.asked.prices, record.power);
    if (run == 0) {
      if (point.watched_at) kept.watched = record.jobs[*point.watched_at];
      for (const FleetTraining& training : point.asked.jobs->trainings) {
        const auto place = place_of(training, list(point, run));
        kept.trainings.push_back(place ? record.jobs[*place] : JobRecord{});
      }
      done.jobs = std::move(record.jobs);
      record.jobs.clear();
    }
    done.cut_short = record.stopped;
    if (run == 0) kept.record = std::move(record);
    if (!done.cut_short) return kept;
    // It is no result: what is known of a first run is shown, but not kept.
    if (run == 0) done.kept = std::move(kept);
    return std::nullopt;
  };
  if (auto kept = kept_run(with_.tasks, joined_hash(point.hash, run), make))
    done.kept = std::move(kept);
  if (!goes_on(with_.tasks)) done.kept.reset();
  const bool asked = run == 0 && (with_.needs_jobs || with_.listener != nullptr);
  if (asked && done.kept && done.jobs.empty()) {  // a folder had it
    ReplicaStops stops;
    FleetRecord again = run_one(point, run, number, stops);
    done.cut_short = again.stopped;
    done.jobs = std::move(again.jobs);
  }
  tell_done(number);
  return done;
}

void PointRuns::take(SchedulePoint& point, std::size_t run, Done& done) {
  out_.stopped = out_.stopped || done.cut_short;
  if (!done.kept || point.measures.size() != run) return;  // seeds stay in their order
  if (run == 0) {
    point.record = std::move(*done.kept->record);
    // Of hundreds of points they would fill the memory.
    const bool kept = with_.needs_jobs || !out_.search.searches;
    if (kept) point.record.jobs = std::move(done.jobs);
    point.watched = done.kept->watched;
    point.trainings = std::move(done.kept->trainings);
  }
  point.measures.push_back(std::move(done.kept->measures));
  ++out_.runs;
}

void PointRuns::run(const std::vector<std::size_t>& points, std::size_t from, std::size_t to) {
  for (const std::size_t p : points) reader_.prices(out_.points[p].asked);  // before threads share
  const std::size_t seeds = to - from;
  std::vector<Done> done(points.size() * seeds);
  const bool timed = out_.search.time_limit.has_value();
  parallel_for(done.size(), with_.threads, [&](std::size_t i) {
    const std::size_t p = timed ? i % points.size() : i / seeds;
    const std::size_t run = timed ? i / points.size() : i % seeds;
    Done& one = done[p * seeds + run];
    if (timed && ends_now())
      one.cut_short = true;
    else
      one = have_run(out_.points[points[p]], from + run, i);
  });
  for (std::size_t i = 0; i < done.size(); ++i)
    if (!timed || !done[i].cut_short)
      take(out_.points[points[i / seeds]], from + i % seeds, done[i]);
  if (timed) take_unfinished(points, done);
}

// Points are held against each other by whole runs. If there is none yet, what a first one came to
// is shown.
void PointRuns::take_unfinished(const std::vector<std::size_t>& points, std::vector<Done>& done) {
  const auto cut = [](const Done& one) { return one.cut_short; };
  if (std::none_of(done.begin(), done.end(), cut)) return;
  out_.search.out_of_time = !interrupted();
  const auto shown =
      std::find_if(done.begin(), done.end(), [&](const Done& one) { return cut(one) && one.kept; });
  if (out_.runs > 0 || shown == done.end()) return;
  const auto i = static_cast<std::size_t>(shown - done.begin());
  const std::size_t seeds = done.size() / points.size();
  take(out_.points[points[i / seeds]], 0, *shown);
}

}  // namespace orrery
