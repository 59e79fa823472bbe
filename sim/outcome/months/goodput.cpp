// SPDX-License-Identifier: Apache-2.0
// Computes goodput in closed form: renewals from failure to failure, one tier inside the next.
#include "sim/outcome/months/goodput.h"

#include <algorithm>
#include <cmath>

#include "sim/base/statistics.h"
#include "sim/outcome/months/levels.h"
#include "sim/outcome/months/save_interval.h"

namespace orrery {
namespace {

constexpr auto share_text = enum_names<TimeShare>({
    "effective",
    "checkpoint stalls",
    "checkpoint traffic",
    "lost work",
    "silent corruption",
    "detection",
    "diagnosis",
    "outage",
    "restart",
    "warm-up",
    "waiting",
    "shrunk",
    "maintenance",
    "data",
    "evaluation",
    "stragglers",
    "variation",
});

// Moves a part of what is still effective to a loss.
void lose(TimeShares& shares, TimeShare to, double part) {
  double& effective = at(shares, TimeShare::effective);
  at(shares, to) += effective * part;
  effective *= 1 - part;
}

// Chances of a recovery to end before the next failure at this rate.
struct Survival {
  double weighted = 0, rate = 0;  // sum of rate * chance
  void add(const GoodputLevel& level, double all) {
    for (const LevelFailure& failure : level.failures)
      weighted += failure.rate * std::exp(-all * failure.recovery.total);
    rate += level.rate;
  }
  double chance() const { return rate > 0 ? std::max(weighted / rate, 1e-300) : 1; }
};

// Adds the time that `attempts` attempts with this mix of failures spend in each phase, over
// `cycle`. An attempt ends early when something fails again.
void add_attempts(TimeShares& shares, const GoodputLevel& level, double all, double attempts,
                  double cycle) {
  for (const LevelFailure& failure : level.failures) {
    const double begun = attempts * failure.rate / cycle;
    double from = 0;
    for (const RecoveryPhase& phase : failure.recovery.phases) {
      if (phase.seconds <= 0) continue;
      const double time = std::exp(-all * from) * -std::expm1(-all * phase.seconds) / all;
      at(shares, phase.share) += begun * time;
      from += phase.seconds;
    }
  }
}

// What is known about the levels below one.
struct Inner {
  TimeShares shares{};  // of the time in which nothing falls back further
  Survival survival;    // of their recoveries; the chances are taken at the level's own rate
  double rate = 0;
  std::vector<const GoodputLevel*> levels;
};

// Wall-clock time of a level's stall, in which the levels below go on failing.
double stall_span(const GoodputLevel& level, double running) { return level.stall / running; }

// The shortest interval that may be chosen.
double least_interval(const GoodputCase& input, const GoodputLevel& level) {
  return std::max({input.step.si(), level.write, level.least});
}

double choose_interval(const GoodputCase& input, const GoodputLevel& level, double running) {
  if (level.interval > 0) return level.interval;
  const Seconds best = optimal_interval(Hertz(level.rate), seconds(stall_span(level, running)));
  return std::max(best.si() * running, least_interval(input, level));
}

// Takes a part of what still runs for a level's saves: stalls, and apart from them what only slows
// the steps.
void add_stalls(TimeShares& shares, const GoodputLevel& level, double part) {
  const double stalls = share_of(shares, TimeShare::effective) * part;
  const double slowed = level.stall > 0 ? stalls * level.slowed / level.stall : 0;
  at(shares, TimeShare::effective) -= stalls;
  at(shares, TimeShare::checkpoint) += stalls - slowed;
  at(shares, TimeShare::checkpoint_traffic) += slowed;
}

// Takes one more level in: its saves, its failures, what they lose and how they are recovered from.
// Returns the work that one of its failures loses on average.
double add_level(Inner& inner, const GoodputLevel& level, double interval) {
  const double running = share_of(inner.shares, TimeShare::effective);
  const double span = interval / running, stall = stall_span(level, running);
  inner.levels.push_back(&level);
  inner.rate += level.rate;
  if (level.rate <= 0) {
    if (std::isfinite(span) && span > 0) add_stalls(inner.shares, level, stall / (span + stall));
    return 0;
  }
  const double all = inner.rate;
  Survival own, any;
  own.add(level, all);
  for (const GoodputLevel* each : inner.levels) any.add(*each, all);
  const double again = (1 - own.chance()) / any.chance();  // attempts after the first
  const double open = 1 / level.rate, recovery = again / all, cycle = open + recovery;
  // Saves that count before a failure: a geometric series over exponential lifetimes.
  const double saves =
      std::exp(-level.rate * level.write) / std::expm1(level.rate * (span + stall));
  const double kept = saves > 0 ? saves * span : 0;
  // Of all saves that begin, some of which a failure cuts short or keeps from counting.
  const double stalled = saves > 0
                             ? std::exp(-level.rate * span) * std::expm1(-level.rate * stall) /
                                   std::expm1(-level.rate * (span + stall)) * open
                             : 0;
  const double lost = open - kept - stalled;
  // The levels below go on failing in all of the open time.
  for (double& share : inner.shares) share *= open / cycle;
  const double in_vain = share_of(inner.shares, TimeShare::effective) * lost / open;
  add_stalls(inner.shares, level, stalled / open);
  at(inner.shares, TimeShare::lost_work) += in_vain;
  at(inner.shares, TimeShare::effective) -= in_vain;
  add_attempts(inner.shares, level, all, open, cycle);
  for (const GoodputLevel* each : inner.levels)
    add_attempts(inner.shares, *each, all, again / all, cycle);
  return lost * running;
}

TimeShares running_only() {
  TimeShares shares{};
  at(shares, TimeShare::effective) = 1;
  return shares;
}

// Replicas missing: those whose hosts wait for repair, and those on their way back.
double mean_throughput(const GoodputCase& input, double leaving_rate) {
  const ElasticPlan& plan = *input.elastic;
  const auto replicas = static_cast<double>(plan.replicas);
  const double per_replica = static_cast<double>(input.units.count) / replicas;
  const std::vector<double> out = units_out_distribution(input);
  const double returning = leaving_rate * plan.rejoin.si();
  const double spread = 12 * std::sqrt(returning) + 12;
  const auto first = static_cast<std::int64_t>(std::max(0.0, returning - spread));
  const auto last = static_cast<std::int64_t>(std::min(replicas, returning + spread));
  double mean = 0;
  for (std::size_t units = 0; units < out.size(); ++units) {
    const double missing =
        std::ceil(std::max(0.0, static_cast<double>(units) - static_cast<double>(input.spares)) /
                      per_replica -
                  1e-9);
    for (std::int64_t count = first; count <= last; ++count) {
      const auto back = static_cast<double>(count);
      const double chance =
          returning > 0 ? std::exp(back * std::log(returning) - returning - log_factorial(back))
                        : (back == 0 ? 1.0 : 0.0);
      mean += out[units] * chance * throughput_at(plan, 1 - (missing + back) / replicas);
    }
  }
  return mean;
}

// What is lost outside the renewals: silent corruption, waiting, running slowly, maintenance.
void add_surroundings(TimeShares& shares, const GoodputCase& input,
                      const std::vector<GoodputLevel>& levels) {
  for (const GoodputLevel& level : levels)
    for (const LevelFailure& failure : level.failures)
      // Work is in vain when corruption is noticed within the latency after it.
      if (failure.latency > 0)
        lose(shares, TimeShare::silent_corruption, -std::expm1(-failure.rate * failure.latency));
  if (input.elastic)
    lose(shares, TimeShare::shrunk, 1 - mean_throughput(input, levels.front().rate));
  lose(shares, TimeShare::data_loading, input.data_loading.value);
  lose(shares, TimeShare::evaluation, input.evaluation.value);
  lose(shares, TimeShare::stragglers, input.stragglers.value);
  lose(shares, TimeShare::variation, input.variation.value);
  if (!input.elastic) {
    const double waiting = spare_use(input).waiting;
    for (double& share : shares) share *= 1 - waiting;
    at(shares, TimeShare::waiting) += waiting;
  }
  const double stop =
      input.maintenance.value.si() + input.start.value.si() + input.warm_up.value.si();
  const double open = 1 / (1 + input.maintenance_rate.value.si() * stop);
  for (double& share : shares) share *= open;
  at(shares, TimeShare::maintenance) += 1 - open;
}

void describe(Goodput& result, const GoodputCase& input) {
  double rate = 0;
  for (const FailureClass& failure : input.failures) {
    const double mean = mean_rate(failure, input.run);
    result.interruptions.push_back({failure.name, mean * seconds_per_day});
    rate += mean;
  }
  result.mean_time_to_failure = seconds(rate > 0 ? 1 / rate : infinite);
  if (input.elastic) {
    const std::vector<double> out = units_out_distribution(input);
    for (std::size_t units = 0; units < out.size(); ++units)
      result.units_out += out[units] * static_cast<double>(units);
  } else {
    result.units_out = spare_use(input).units_out;
  }
  result.effective = share_of(result.shares, TimeShare::effective);
  result.time_ratio = effective_time_ratio(result.shares);
  const double open = 1 - share_of(result.shares, TimeShare::maintenance);
  result.effective_training_time = open > 0 ? result.time_ratio / open : 0;
  if (input.start_measured > 0)
    result.start_extrapolation = static_cast<double>(input.gpus) / input.start_measured;
  if (input.tokens > 0 && input.tokens_per_step > 0)
    result.days =
        input.tokens / input.tokens_per_step * input.step.si() / seconds_per_day / result.effective;
}

}  // namespace

std::string_view to_text(TimeShare which) { return share_text[which]; }

double effective_time_ratio(const TimeShares& shares) {
  double sum = 0;
  for (const TimeShare slow :
       {TimeShare::effective, TimeShare::checkpoint_traffic, TimeShare::stragglers,
        TimeShare::variation, TimeShare::shrunk, TimeShare::data_loading, TimeShare::evaluation})
    sum += share_of(shares, slow);
  return sum;
}

Seconds optimal_interval(Hertz rate, Seconds stall) {
  if (rate <= Hertz{}) return seconds(infinite);
  const double cost = rate.si() * stall.si();
  if (cost <= 0) return seconds(0);
  // ln(1 - z) + z falls from 0 without bound: one root, halved down to rounding.
  double low = 0, high = 1;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double z = 0.5 * (low + high);
    if (z <= low || z >= high) break;
    (std::log1p(-z) + z + cost > 0 ? low : high) = z;
  }
  return seconds(low / rate.si());
}

namespace {

// What is left of running time when all levels are taken in.
double left_with(const std::vector<GoodputLevel>& levels, const std::vector<double>& intervals) {
  Inner inner{.shares = running_only()};
  for (std::size_t i = 0; i < levels.size(); ++i) add_level(inner, levels[i], intervals[i]);
  return share_of(inner.shares, TimeShare::effective);
}

// Of the round intervals around the optimal ones, those that together lose least.
void round_intervals(const GoodputCase& input, const std::vector<GoodputLevel>& levels,
                     std::vector<double>& intervals) {
  std::vector<std::vector<double>> choices;
  for (std::size_t i = 0; i < levels.size(); ++i)
    choices.push_back(
        levels[i].peers || !std::isfinite(intervals[i]) ? std::vector{intervals[i]}
        : levels[i].interval > 0
            ? std::vector{whole_steps(input.step.si(), levels[i].write, intervals[i])}
            : round_steps(input.step.si(), least_interval(input, levels[i]), intervals[i]));
  std::vector<std::size_t> place(levels.size(), 0);
  std::vector<double> tried(levels.size());
  double best = -1;
  while (true) {
    for (std::size_t i = 0; i < levels.size(); ++i) tried[i] = choices[i][place[i]];
    if (const double left = left_with(levels, tried); left > best) {
      best = left;
      intervals = tried;
    }
    std::size_t next = 0;
    while (next < levels.size() && ++place[next] == choices[next].size()) place[next++] = 0;
    if (next == levels.size()) return;
  }
}

}  // namespace

std::vector<double> level_intervals(const GoodputCase& input,
                                    const std::vector<GoodputLevel>& levels) {
  std::vector<double> intervals;
  Inner inner{.shares = running_only()};
  for (const GoodputLevel& level : levels) {
    intervals.push_back(
        choose_interval(input, level, share_of(inner.shares, TimeShare::effective)));
    add_level(inner, level, intervals.back());
  }
  if (input.whole_steps) round_intervals(input, levels, intervals);
  return intervals;
}

Goodput goodput(const GoodputCase& input) {
  check_goodput(input);
  Goodput result;
  const std::vector<GoodputLevel> levels = goodput_levels(input);
  const std::vector<double> intervals = level_intervals(input, levels);
  Inner inner{.shares = running_only()};
  double lost = 0;
  for (const GoodputLevel& level : levels) {
    const double interval = intervals[result.tiers.size()];
    const double per_failure = add_level(inner, level, interval);
    lost += per_failure * level.rate;
    result.tiers.push_back({.name = level.name,
                            .interval = seconds(interval),
                            .failures = Hertz(level.rate),
                            .lost = seconds(per_failure),
                            .stall = seconds(level.stall - level.slowed),
                            .write = seconds(level.write + level.slowed)});
    if (level.peers) continue;
    const std::size_t tier = result.tiers.size() - (input.elastic ? 2 : 1);
    result.tiers.back().size = input.tiers[tier].size;
    result.tiers.back().bandwidth = input.tiers[tier].bandwidth;
    result.tiers.back().slowed = input.tiers[tier].slowed;
  }
  if (inner.rate > 0) result.lost_per_failure = seconds(lost / inner.rate);
  result.shares = inner.shares;
  add_surroundings(result.shares, input, levels);
  describe(result, input);
  return result;
}

double expected_time_ratio(const ExpectedRatio& input) {
  const double failures = input.hosts * input.failure_rate.si();
  const double lost = failures * (input.restart.si() + input.interval.si() / 2);
  return (1 - lost) / (1 + input.write.si() / input.interval.si());
}

}  // namespace orrery
