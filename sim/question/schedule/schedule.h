// SPDX-License-Identifier: Apache-2.0
// Answers what becomes of the jobs of one cluster, by each of several policies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/tasks/tasks.h"
#include "sim/question/compare/objective.h"
#include "sim/question/compare/race.h"
#include "sim/question/schedule/kept_run.h"
#include "sim/question/schedule/point_case.h"
#include "sim/question/schedule/settings.h"

namespace orrery {

// How far the work is: runs, and the time that the oldest of those under way has reached.
struct ScheduleProgress {
  std::int64_t done = 0, most = 0;  // runs, of at most so many
  FleetTime reached, end;           // of the run; end: of its horizon, else its last submission
  std::int64_t waiting = 0;         // jobs, then
  double share() const;             // of all runs
};

struct Scheduled;

// Hears what happens in the first run of a question's only point.
class ScheduleListener {
 public:
  virtual ~ScheduleListener() = default;
  // Before it: the point, and the jobs. Error where there are several points.
  virtual void begin(const Scheduled& asked) = 0;
  virtual void take(const FleetEvent& event) = 0;
};

struct ScheduleWith {
  Catalogues& catalogues;
  std::optional<std::uint64_t> seed = {};  // of the first run
  int threads = 0;                         // 0: all cores
  // After each run, and every few thousand events of one. From any thread, one call at a time.
  std::function<void(const ScheduleProgress&)> progress = {};
  // Where processes share the runs. Of a part no point is the best: nothing was compared.
  Tasks* tasks = nullptr;
  bool needs_jobs = false;  // what each job did, though a folder has the first runs
  ScheduleListener* listener = nullptr;
};

struct SchedulePoint {
  // Its values where the question has several, but for policy and place: keys, and as words.
  std::vector<std::pair<std::string, std::string>> varied;
  std::uint64_t hash = 0;  // of its settings
  PointCase asked;
  std::shared_ptr<const ClusterJobs> list;  // of the first seed
  std::optional<std::size_t> watched_at;    // place in it of the job whose wait is told
  FleetRecord record;                       // of the first seed
  std::optional<JobRecord> watched;         // of the job whose wait is told
  // Of each training, of the first seed; without a start where the days end before it comes.
  std::vector<JobRecord> trainings;
  std::vector<FleetMeasures> measures;  // of each seed that came to its end
  double turned_away = 0;  // jobs of a run, in the mean: they ask for more than the cluster has
  bool takes_most = true;  // no other point that was run takes more of them
  double bound = 0;  // least mean completion of any policy on as many accelerators, in seconds
  bool ruled_out = false;  // by that bound: not run
  bool kept = true;        // all limits
  bool known = true;       // the figure by which the best is found: some job ended, or started
  double chance = 0;       // that it is the best; several seeds
  // Of two points the one that stands higher is better, whatever their figures are.
  int standing() const { return (takes_most ? 4 : 0) + (kept ? 2 : 0) + (known ? 1 : 0); }
};

// What a point has more than the best one, seed by seed; nothing of figures that are not known.
struct PointDifference {
  std::size_t point = 0;
  std::optional<SeedMean> objective, completion_s, wait_s;
};

// Combinations of searched values that the question does not allow.
struct LeftOutPoints {
  std::string why;
  std::int64_t points = 0;
};

struct ScheduleSearch {
  bool searches = false;  // some settings by itself
  std::vector<LeftOutPoints> left_out;
  std::optional<Seconds> time_limit;
  bool out_of_time = false;  // it ended the search: the answer depends on how fast the machine was
  std::size_t compared = 0;  // first seeds that points are held against each other by
  std::optional<std::size_t> now;  // the point of --like
};

// By another figure the best point is another one: so much better, in that figure's unit.
struct OtherFigure {
  std::string figure;
  std::size_t point = 0;
  SeedMean more;  // than the best point by the objective
};

// The best of the points with another value of one setting.
struct OtherValue {
  std::string key, value;
  std::size_t point = 0;
  SeedMean more;         // of the objective
  bool changes = false;  // the best point with that value alone is worse, beyond chance
};

// Why the best point is the best, and what would make another one so: from the runs that there are.
struct BestReasons {
  std::optional<std::size_t> runner_up;  // the next one by the objective's mean
  SeedMean more;                         // that it has of the objective
  std::vector<OtherFigure> by_figure;
  std::vector<OtherValue> by_value;
  std::optional<std::size_t> without_limits;  // another one is best then
  std::optional<SeedMean> now;                // what the point of --like has more of the objective
};

struct Scheduled {
  JsonValue settings;
  ClusterJobs jobs;  // of the first point and the first seed
  std::vector<SchedulePoint> points;
  std::size_t best = 0;  // by the objective, of those that keep the limits
  std::string objective = "completion.mean";
  std::vector<PointDifference> differences;  // of several seeds: the other points that were run
  BestReasons reasons;
  ScheduleSearch search;
  std::optional<double> confidence;  // that was asked of the best
  std::int64_t runs = 0;             // simulated
  bool watches = false;              // a job whose wait is told
  std::uint64_t seed = 0;
  std::int64_t seeds = 1;
  bool draws = false;     // the seed counts
  bool stopped = false;   // Ctrl-C ended it: some jobs did not come to their end
  std::string catalogue;  // its hash
  bool exists() const { return points[best].kept; }
};

// Values of the machine, the policy and what breaks may be lists or ranges: each with each is a
// point, run on the same arrivals and failures. With `confidence` points that are surely not the
// best get no further seeds, and none come once one is the best with that chance.
// "search" lists values of settings by itself (search_values.h); combinations that the question
// does not allow are left out. With "time_limit" all ends then, with the runs that came to their
// ends. Errors: names that are not known (with the nearest), a cluster of no accelerators, no job
// of the days, a job that the list does not have, seeds where nothing is drawn; CannotExist where
// no job fits the cluster.
Scheduled schedule_jobs(const JsonValue& settings, const ScheduleWith& with);

}  // namespace orrery
