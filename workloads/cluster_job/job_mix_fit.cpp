// SPDX-License-Identifier: Apache-2.0
// Takes the rates, sizes, lengths and limits of a list of jobs.
#include "workloads/cluster_job/job_mix_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "sim/base/errors/check.h"
#include "workloads/cluster_job/job_clock.h"

namespace orrery {
namespace {

constexpr std::size_t least_jobs_of_band = 50;

// To a sum of 1, six digits each.
template <class List>
void make_shares(List& list) {
  const double sum = std::accumulate(list.begin(), list.end(), 0.0);
  for (double& share : list) share = six_digits(share / sum);
}

// Jobs an hour in each of `n` kinds of hours; where the list has no hour of a kind, the mean.
template <std::size_t n, class Kind>
std::array<double, n> rates(const JobsByHour& counted, const Kind& kind_of) {
  std::array<double, n> jobs{}, hours{};
  for (std::size_t i = 0; i < counted.jobs.size(); ++i) {
    jobs[kind_of(i)] += counted.jobs[i];
    hours[kind_of(i)] += 1;
  }
  const double all = std::accumulate(jobs.begin(), jobs.end(), 0.0),
               mean = all / static_cast<double>(counted.jobs.size());
  for (std::size_t k = 0; k < n; ++k) jobs[k] = hours[k] > 0 ? jobs[k] / hours[k] : mean;
  make_shares(jobs);
  return jobs;
}

struct Expected {
  double jobs = 0, expected = 0;
};

// Of jobs over what was expected. A Poisson process alone has a variance of the mean: where the
// jobs have more, deviations are scaled down to what is beyond it; where not, there is no swing.
QuantileTable swing(const std::vector<Expected>& counts) {
  double noise = 0, variance = 0;
  for (const Expected& c : counts) {
    noise += c.expected;
    variance += (c.jobs - c.expected) * (c.jobs - c.expected);
  }
  if (!(variance > noise)) return {};
  const double beyond = std::sqrt((variance - noise) / variance);
  std::vector<WeightedValue> factors;
  for (const Expected& c : counts)
    if (c.expected > 0) factors.push_back({1 + beyond * (c.jobs / c.expected - 1), c.expected});
  return quantiles_of(std::move(factors));
}

struct WholeDay {
  std::size_t first_hour = 0;
  double jobs = 0;
};

std::vector<WholeDay> whole_days(const JobsByHour& counted) {
  std::vector<WholeDay> days;
  std::size_t hour = 0;
  while (hour < counted.jobs.size() && counted.hour_of_day(hour) != 0) ++hour;
  for (; hour + day_hours <= counted.jobs.size(); hour += day_hours) {
    const auto first = counted.jobs.begin() + static_cast<std::ptrdiff_t>(hour);
    days.push_back({hour, std::accumulate(first, first + day_hours, 0.0)});
  }
  return days;
}

QuantileTable day_swing(const JobsByHour& counted, const JobArrivals& arrivals,
                        const std::vector<WholeDay>& days) {
  double jobs = 0, weights = 0;
  for (const WholeDay& day : days) {
    jobs += day.jobs;
    weights += arrivals.by_weekday[counted.weekday(day.first_hour)];
  }
  std::vector<Expected> counts;
  for (const WholeDay& day : days)
    counts.push_back(
        {day.jobs, jobs * arrivals.by_weekday[counted.weekday(day.first_hour)] / weights});
  return swing(counts);
}

// Against the jobs of its own day: what the day swings is no part of it.
QuantileTable hour_swing(const JobsByHour& counted, const JobArrivals& arrivals,
                         const std::vector<WholeDay>& days) {
  const double all = std::accumulate(arrivals.by_hour.begin(), arrivals.by_hour.end(), 0.0);
  std::vector<Expected> counts;
  for (const WholeDay& day : days)
    for (std::size_t h = 0; h < day_hours; ++h)
      counts.push_back({counted.jobs[day.first_hour + h], day.jobs * arrivals.by_hour[h] / all});
  return swing(counts);
}

JobArrivals fitted_arrivals(const ClusterJobs& list) {
  constexpr std::size_t least_days = 7;
  const JobsByHour counted = jobs_by_hour(list);
  JobArrivals arrivals;
  arrivals.jobs_per_day = six_digits(jobs_per_day_of(list));
  arrivals.by_hour =
      rates<day_hours>(counted, [&](std::size_t i) { return counted.hour_of_day(i); });
  arrivals.by_weekday =
      rates<week_days>(counted, [&](std::size_t i) { return counted.weekday(i); });
  const std::vector<WholeDay> days = whole_days(counted);
  const bool any =
      std::any_of(days.begin(), days.end(), [](const WholeDay& d) { return d.jobs > 0; });
  if (days.size() < least_days || !any) return arrivals;
  arrivals.day_swing = day_swing(counted, arrivals, days);
  arrivals.hour_swing = hour_swing(counted, arrivals, days);
  return arrivals;
}

// The largest size of each band in thousandths of a GPU, that of the last without end.
std::vector<std::int64_t> band_ends(const ClusterJobs& list) {
  std::map<std::int64_t, std::size_t> jobs_of;
  for (const ClusterJob& job : list.jobs) ++jobs_of[milli_gpus(job)];
  std::vector<std::int64_t> ends;
  std::size_t in_band = 0, left = list.jobs.size();
  for (const auto& [milli, jobs] : jobs_of) {
    in_band += jobs;
    left -= jobs;
    if (in_band < least_jobs_of_band || left < least_jobs_of_band) continue;
    ends.push_back(milli);
    in_band = 0;
  }
  ends.push_back(INT64_MAX);
  return ends;
}

// Jobs of one band that end alike.
struct PartJobs {
  std::map<std::int64_t, std::size_t> sizes;  // by thousandths of a GPU
  std::vector<WeightedValue> lengths;
  std::vector<double> queues;
};

JobMixPart part_of(PartJobs&& jobs, JobFate fate, const ClusterJobs& list) {
  JobMixPart part;
  const auto number = static_cast<double>(jobs.lengths.size());
  part.share = six_digits(number / static_cast<double>(list.jobs.size()));
  part.fate = fate;
  part.sizes.clear();
  for (const auto& [milli, count] : jobs.sizes)
    part.sizes.push_back(
        {static_cast<double>(milli) / whole_gpu, six_digits(static_cast<double>(count) / number)});
  part.length_s = quantiles_of(std::move(jobs.lengths));
  make_shares(jobs.queues);
  if (list.queues.size() > 1) part.queues = std::move(jobs.queues);
  return part;
}

std::vector<JobMixPart> fitted_parts(const ClusterJobs& list) {
  const std::vector<std::int64_t> ends = band_ends(list);
  std::vector<PartJobs> all(ends.size() * job_fates);
  for (const ClusterJob& job : list.jobs) {
    const auto band = std::lower_bound(ends.begin(), ends.end(), milli_gpus(job)) - ends.begin();
    PartJobs& part =
        all[static_cast<std::size_t>(band) * job_fates + static_cast<std::size_t>(job.fate)];
    ++part.sizes[milli_gpus(job)];
    part.lengths.push_back({to_seconds(job.length).si(), 1});
    part.queues.resize(list.queues.size());
    ++part.queues[static_cast<std::size_t>(job.queue)];
  }
  std::vector<JobMixPart> parts;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].lengths.empty())
      parts.push_back(part_of(std::move(all[i]), static_cast<JobFate>(i % job_fates), list));
  return parts;
}

// From the largest on; names are not kept.
std::vector<double> fitted_users(const ClusterJobs& list) {
  std::vector<double> shares(list.users.size());
  double known = 0;
  for (const ClusterJob& job : list.jobs)
    if (job.user >= 0) {
      ++shares[static_cast<std::size_t>(job.user)];
      ++known;
    }
  if (known == 0) return {};
  make_shares(shares);
  std::sort(shares.begin(), shares.end(), std::greater<>());
  return shares;
}

// Joined with the next longer ones until there are enough jobs; a rest joins the last.
std::vector<JobLimits> fitted_limits(const ClusterJobs& list) {
  if (std::all_of(list.jobs.begin(), list.jobs.end(),
                  [](const ClusterJob& job) { return job.limit <= job.length; }))
    return {};
  constexpr double decades[] = {10, 100, 1e3, 1e4, 1e5, std::numeric_limits<double>::infinity()};
  std::vector<WeightedValue> of_decade[std::size(decades)];
  for (const ClusterJob& job : list.jobs) {
    if (job.length.us == 0) continue;  // no factor makes a limit of it
    const double length = to_seconds(job.length).si();
    const auto at = std::lower_bound(std::begin(decades), std::end(decades), length);
    of_decade[at - std::begin(decades)].push_back({to_seconds(job.limit).si() / length, 1});
  }
  std::vector<std::vector<WeightedValue>> bands;
  std::vector<double> ends;
  std::vector<WeightedValue> gathered;
  for (std::size_t i = 0; i < std::size(decades); ++i) {
    gathered.insert(gathered.end(), of_decade[i].begin(), of_decade[i].end());
    if (gathered.size() < least_jobs_of_band) continue;
    bands.push_back(std::move(gathered));
    ends.push_back(decades[i]);
    gathered.clear();
  }
  if (bands.empty()) bands.emplace_back();
  bands.back().insert(bands.back().end(), gathered.begin(), gathered.end());
  ends.resize(bands.size());
  ends.back() = std::numeric_limits<double>::infinity();
  if (bands.back().empty()) return {};  // all lengths are 0
  std::vector<JobLimits> limits;
  for (std::size_t i = 0; i < bands.size(); ++i)
    limits.push_back({.up_to_s = ends[i], .factor = quantiles_of(std::move(bands[i]))});
  return limits;
}

}  // namespace

JobMix fit_job_mix(const ClusterJobs& list) {
  if (list.jobs.empty())
    throw Error({.file = list.name, .found = "no jobs", .expected = "at least one"});
  JobMix mix{.name = list.name};
  mix.arrivals = fitted_arrivals(list);
  mix.parts = fitted_parts(list);
  mix.queues = list.queues;
  mix.users = fitted_users(list);
  mix.limits = fitted_limits(list);
  return mix;
}

}  // namespace orrery
