// SPDX-License-Identifier: Apache-2.0
// Draws jobs of a mix, and takes the figures of mixes and of lists.
#include "workloads/cluster_job/job_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/errors/check.h"
#include "sim/base/random.h"
#include "sim/base/text/words.h"
#include "workloads/cluster_job/job_clock.h"

namespace orrery {
namespace {

// Streams of a seed: the number of a draw is that of its job, day or hour.
enum class Drawn : std::uint64_t { time, part, size, length, queue, user, limit, day, hour };

class Draws {
 public:
  Draws(std::uint64_t seed, Drawn what)
      : stream_(seed, first_stream + static_cast<std::uint64_t>(what)) {}
  double operator()(std::uint64_t n) const {  // of [0, 1)
    return static_cast<double>(stream_.bits(n) >> 11U) * 0x1.0p-53;
  }

 private:
  static constexpr std::uint64_t first_stream = 0x4A6F'624D'6978'0000;  // apart from other draws
  RandomStream stream_;
};

// Which of several things that have shares.
class Choice {
 public:
  template <class List, class Share>
  Choice(const List& list, const Share& share_of) {
    double sum = 0;
    for (const auto& one : list) ends_.push_back(sum += share_of(one));
    CHECK_THAT(sum > 0, "something has a share");
  }
  explicit Choice(const std::vector<double>& shares)
      : Choice(shares, [](double share) { return share; }) {}

  std::size_t operator()(double uniform) const {
    const double at = uniform * ends_.back();
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end() - 1, at) -
                                    ends_.begin());
  }
  // How far into it, from 0 to 1.
  double way_into(std::size_t chosen, double uniform) const {
    const double begin = chosen == 0 ? 0 : ends_[chosen - 1], all = ends_[chosen] - begin;
    return all > 0 ? std::clamp((uniform * ends_.back() - begin) / all, 0.0, 1.0) : 0;
  }

 private:
  std::vector<double> ends_;
};

// Jobs that each hour of the span expects, up to a factor.
std::vector<double> hours_of(const JobArrivals& arrivals, FleetTime span, std::uint64_t seed) {
  const Draws day_draw(seed, Drawn::day), hour_draw(seed, Drawn::hour);
  const std::int64_t hours = (span.us + hour_us - 1) / hour_us;
  std::vector<double> all(static_cast<std::size_t>(hours));
  for (std::int64_t first = 0; first < hours; first += day_hours) {
    const std::int64_t day = first / day_hours;
    double weight = arrivals.by_weekday[static_cast<std::size_t>(day % week_days)];
    if (!arrivals.day_swing.empty())
      weight *= arrivals.day_swing.at(day_draw(static_cast<std::uint64_t>(day)));
    std::array<double, day_hours> of_day = arrivals.by_hour;
    if (!arrivals.hour_swing.empty())
      for (std::size_t h = 0; h < of_day.size(); ++h)
        of_day[h] *= arrivals.hour_swing.at(hour_draw(static_cast<std::uint64_t>(first) + h));
    double sum = std::accumulate(of_day.begin(), of_day.end(), 0.0);
    if (sum <= 0) {  // every hour was drawn empty: the day is not
      of_day = arrivals.by_hour;
      sum = std::accumulate(of_day.begin(), of_day.end(), 0.0);
    }
    for (std::int64_t h = 0; h < std::min<std::int64_t>(day_hours, hours - first); ++h)
      all[static_cast<std::size_t>(first + h)] = weight * of_day[static_cast<std::size_t>(h)] / sum;
  }
  const std::int64_t rest = span.us % hour_us;
  if (rest > 0) all.back() *= static_cast<double>(rest) / static_cast<double>(hour_us);
  return all;
}

// In order. Of a Poisson process whose number of jobs is known, each job's time is independent of
// those of the others.
std::vector<std::int64_t> times_of(const JobMix& mix, FleetTime span, std::int64_t jobs,
                                   std::uint64_t seed) {
  const std::vector<double> hours = hours_of(mix.arrivals, span, seed);
  if (std::accumulate(hours.begin(), hours.end(), 0.0) <= 0)
    throw Error({.file = mix.name,
                 .path = "span",
                 .found = "hours in which nothing is submitted",
                 .expected = "a longer span"});
  const Choice hour_of(hours);
  const Draws draw(seed, Drawn::time);
  std::vector<std::int64_t> times;
  times.reserve(static_cast<std::size_t>(jobs));
  for (std::int64_t i = 0; i < jobs; ++i) {
    const double uniform = draw(static_cast<std::uint64_t>(i));
    const std::size_t hour = hour_of(uniform);
    const std::int64_t begin = static_cast<std::int64_t>(hour) * hour_us,
                       width = std::min(hour_us, span.us - begin);
    const auto in =
        static_cast<std::int64_t>(hour_of.way_into(hour, uniform) * static_cast<double>(width));
    times.push_back(begin + std::min(in, width - 1));
  }
  std::sort(times.begin(), times.end());
  return times;
}

FleetTime rounded_seconds(double seconds) {
  const double us = seconds * 1e6;
  if (us >= static_cast<double>(most_fleet_time.us)) return most_fleet_time;
  return FleetTime{std::llround(us)};
}

// At least a thousandth, below all of it.
std::uint16_t milli_of(double gpus) {
  return static_cast<std::uint16_t>(std::clamp<long>(std::lround(gpus * whole_gpu), 1, 999));
}

// Draws what a job is, all but its time.
class JobDrawer {
 public:
  JobDrawer(const JobMix& mix, std::uint64_t seed)
      : mix_(mix),
        part_(mix.parts, [](const JobMixPart& p) { return p.share; }),
        user_(mix.users.empty() ? std::vector<double>{1} : mix.users),
        part_draw_(seed, Drawn::part),
        size_draw_(seed, Drawn::size),
        length_draw_(seed, Drawn::length),
        queue_draw_(seed, Drawn::queue),
        user_draw_(seed, Drawn::user),
        limit_draw_(seed, Drawn::limit) {
    for (const JobMixPart& part : mix.parts) {
      sizes_.emplace_back(part.sizes, [](const SizeShare& s) { return s.share; });
      queues_.emplace_back(part.queues.empty() ? std::vector<double>{1} : part.queues);
    }
  }

  ClusterJob drawn(std::uint64_t n) {
    const std::size_t at = part_(part_draw_(n));
    const JobMixPart& part = mix_.parts[at];
    const double gpus = part.sizes[sizes_[at](size_draw_(n))].gpus;
    const double length = part.length_s.at(length_draw_(n));
    ClusterJob job;
    job.length = rounded_seconds(length);
    job.limit = std::max(job.length, limit_of(length, n));
    job.gpus = static_cast<std::int32_t>(std::ceil(gpus));
    if (gpus < 1) job.milli = milli_of(gpus);
    job.queue = static_cast<std::int32_t>(queues_[at](queue_draw_(n)));
    if (!mix_.users.empty()) job.user = static_cast<std::int32_t>(user_(user_draw_(n)));
    job.row = static_cast<std::uint32_t>(n + 1);
    job.fate = part.fate;
    return job;
  }

 private:
  FleetTime limit_of(double length, std::uint64_t n) const {
    for (const JobLimits& limits : mix_.limits)
      if (length <= limits.up_to_s)
        return rounded_seconds(length * limits.factor.at(limit_draw_(n)));
    return {};
  }

  const JobMix& mix_;
  Choice part_, user_;
  std::vector<Choice> sizes_, queues_;  // of each part
  Draws part_draw_, size_draw_, length_draw_, queue_draw_, user_draw_, limit_draw_;
};

// Checked.
std::int64_t number_of_jobs(const JobMix& mix, FleetTime span, double jobs_per_day) {
  const auto refuse = [&](const char* what, const std::string& found, const std::string& expected) {
    throw Error({.file = mix.name, .path = what, .found = found, .expected = expected});
  };
  if (span.us <= 0 || span > most_fleet_time)
    refuse("span", fmt::format("{} s", to_seconds(span).si()), "a time above 0, up to 1,000 years");
  if (!(jobs_per_day > 0) || !std::isfinite(jobs_per_day))
    refuse("jobs_per_day", fmt::format("{}", jobs_per_day), "a number above 0");
  const double jobs =
      std::round(jobs_per_day * (static_cast<double>(span.us) / static_cast<double>(day_us)));
  if (jobs < 1) refuse("jobs_per_day", "no job in the span", "at least one");
  if (jobs > static_cast<double>(most_drawn_jobs))
    refuse("jobs_per_day", plural(jobs, "job"), "at most " + plural(most_drawn_jobs, "job"));
  return static_cast<std::int64_t>(jobs);
}

bool is_even(const JobArrivals& arrivals) {
  const JobArrivals even;
  return arrivals.by_hour == even.by_hour && arrivals.by_weekday == even.by_weekday &&
         arrivals.day_swing.empty() && arrivals.hour_swing.empty();
}

void add_share(FateShares& shares, JobFate fate, double share) {
  shares[static_cast<std::size_t>(fate)] += share;
}
void divide(FateShares& shares, double by) {
  for (double& share : shares) share = by > 0 ? share / by : 0;
}

// The smallest value up to which so much of the weights lies.
double weighted_quantile(std::vector<WeightedValue> values, double share) {
  std::sort(values.begin(), values.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  double all = 0, passed = 0;
  for (const WeightedValue& v : values) all += v.weight;
  for (const WeightedValue& v : values)
    if ((passed += v.weight) >= share * all) return v.value;
  return values.back().value;
}

// Of the lengths of all parts.
double length_quantile(const JobMix& mix, double largest, double share) {
  double all = 0, low = 0, high = largest;
  for (const JobMixPart& part : mix.parts) all += part.share;
  for (int i = 0; i < 80; ++i) {  // halves until no double lies between
    const double middle = (low + high) / 2;
    double below = 0;
    for (const JobMixPart& part : mix.parts)
      below += part.share * part.length_s.share_up_to(middle);
    (below < share * all ? low : high) = middle;
  }
  return high;
}

}  // namespace

double least_size(const JobMix& mix) {
  double least = std::numeric_limits<double>::infinity();
  for (const JobMixPart& part : mix.parts)
    for (const SizeShare& size : part.sizes)
      if (part.share > 0 && size.share > 0) least = std::min(least, size.gpus);
  return least;
}

JobFigures figures_of(const JobMix& mix) {
  JobFigures f{.jobs_per_day = mix.arrivals.jobs_per_day};
  std::vector<WeightedValue> sizes;
  double all = 0;
  for (const JobMixPart& part : mix.parts) {
    double of_sizes = 0, gpus = 0, one = 0;
    for (const SizeShare& s : part.sizes) of_sizes += s.share;
    for (const SizeShare& s : part.sizes) {
      gpus += s.share / of_sizes * s.gpus;
      if (s.gpus <= 1) one += s.share / of_sizes;
      if (s.share > 0) f.largest_gpus = std::max(f.largest_gpus, s.gpus);
      sizes.push_back({s.gpus, part.share * s.share / of_sizes});
    }
    const double mean = part.length_s.mean();
    all += part.share;
    f.mean_s += part.share * mean;
    f.mean_gpus += part.share * gpus;
    f.one_gpu += part.share * one;
    f.gpu_seconds += part.share * mean * gpus;
    f.largest_s = std::max(f.largest_s, part.length_s.largest());
    add_share(f.jobs, part.fate, part.share);
    add_share(f.gpu_time, part.fate, part.share * mean * gpus);
  }
  divide(f.jobs, all);
  divide(f.gpu_time, f.gpu_seconds);
  for (double* figure : {&f.mean_s, &f.mean_gpus, &f.one_gpu, &f.gpu_seconds}) *figure /= all;
  f.median_gpus = weighted_quantile(std::move(sizes), 0.5);
  f.median_s = length_quantile(mix, f.largest_s, 0.5);
  f.p99_s = length_quantile(mix, f.largest_s, 0.99);
  return f;
}

JobFigures figures_of(const ClusterJobs& list) {
  if (list.jobs.empty())
    throw Error({.file = list.name, .found = "no jobs", .expected = "at least one"});
  JobFigures f;
  std::vector<WeightedValue> lengths, sizes;
  for (const ClusterJob& job : list.jobs) {
    const double length = to_seconds(job.length).si(), gpus = gpus_asked(job);
    f.mean_s += length;
    f.mean_gpus += gpus;
    f.one_gpu += job.gpus == 1 ? 1 : 0;
    f.gpu_seconds += length * gpus;
    f.largest_s = std::max(f.largest_s, length);
    f.largest_gpus = std::max(f.largest_gpus, gpus);
    add_share(f.jobs, job.fate, 1);
    add_share(f.gpu_time, job.fate, length * gpus);
    lengths.push_back({length, 1});
    sizes.push_back({gpus, 1});
  }
  const auto all = static_cast<double>(list.jobs.size());
  divide(f.jobs, all);
  divide(f.gpu_time, f.gpu_seconds);
  for (double* figure : {&f.mean_s, &f.mean_gpus, &f.one_gpu, &f.gpu_seconds}) *figure /= all;
  f.jobs_per_day = jobs_per_day_of(list);
  f.median_gpus = weighted_quantile(std::move(sizes), 0.5);
  f.median_s = weighted_quantile(lengths, 0.5);
  f.p99_s = weighted_quantile(std::move(lengths), 0.99);
  return f;
}

ClusterJobs draw_jobs(const JobMix& mix, FleetTime span, double jobs_per_day, std::uint64_t seed) {
  const std::int64_t jobs = number_of_jobs(mix, span, jobs_per_day);
  const std::vector<std::int64_t> times = times_of(mix, span, jobs, seed);
  JobDrawer drawer(mix, seed);
  ClusterJobs list{.name = mix.name};
  list.began = FleetTime{first_monday_us + times.front()};
  list.queues = mix.queues;
  list.notes = mix.notes;
  for (std::size_t i = 0; i < mix.users.size(); ++i)
    list.users.push_back(fmt::format("user {}", i + 1));
  list.jobs.reserve(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    list.jobs.push_back(drawer.drawn(i));
    list.jobs.back().submit = FleetTime{times[i] - times.front()};
  }
  if (is_even(mix.arrivals)) list.notes.emplace_back("Drawn jobs come evenly over hours and days");
  if (mix.limits.empty())
    list.notes.emplace_back("Drawn jobs have no limits: lengths stand for them");
  return list;
}

}  // namespace orrery
