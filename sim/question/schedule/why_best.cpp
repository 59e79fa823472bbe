// SPDX-License-Identifier: Apache-2.0
// Holds the best point of a schedule against the others, figure by figure and value by value.
#include "sim/question/schedule/why_best.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/outcome/noise.h"

namespace orrery {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Of the seeds that both have; nothing where one of them does not know the figure.
std::optional<SeedMean> difference(const SchedulePoint& point, const SchedulePoint& best,
                                   const FleetFigure& figure, double sign = 1) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(point.measures.size(), best.measures.size()); ++i) {
    const FleetMeasures &one = point.measures[i], &other = best.measures[i];
    if (!figure.is_known(one) || !figure.is_known(other)) return std::nullopt;
    values.push_back(sign * (figure.of(one) - figure.of(other)));
  }
  if (values.empty()) return std::nullopt;
  return mean_over_seeds(values);
}

double sign_of(const FleetFigure& figure) { return figure.more_is_better ? -1 : 1; }

// Better beyond what chance does.
bool is_better(const SeedMean& more, std::size_t seeds, double best) {
  return seeds > 1 ? more.high < 0 : more.mean < -least_gain * std::abs(best);
}

Pairs settings_of(const SchedulePoint& point) {
  Pairs pairs = {{"policy", point.asked.policy}, {"place", point.asked.place}};
  pairs.insert(pairs.end(), point.varied.begin(), point.varied.end());
  return pairs;
}

// The best point with that value in place of its own; nothing where it was not run.
std::optional<std::size_t> sibling(const Scheduled& s,
                                   const std::pair<std::string, std::string>& v) {
  Pairs wanted = settings_of(s.points[s.best]);
  for (auto& pair : wanted)
    if (pair.first == v.first) pair.second = v.second;
  for (std::size_t i = 0; i < s.points.size(); ++i)
    if (settings_of(s.points[i]) == wanted && !s.points[i].measures.empty()) return i;
  return std::nullopt;
}

bool may_win(const SchedulePoint& point, bool limited) {
  return !point.measures.empty() && point.takes_most && point.known && (point.kept || !limited);
}

std::vector<OtherFigure> by_figure(const Scheduled& s, const FleetFigure& objective) {
  std::vector<OtherFigure> out;
  const SchedulePoint& best = s.points[s.best];
  for (const FleetFigure& figure : fleet_figures()) {
    if (&figure == &objective || (figure.of_services && best.asked.jobs->served.empty())) continue;
    std::optional<OtherFigure> other;
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      const SchedulePoint& point = s.points[i];
      if (i == s.best || !may_win(point, true)) continue;
      const auto more = difference(point, best, figure, sign_of(figure));
      if (!more || (other && more->mean >= other->more.mean)) continue;
      const std::size_t seeds = std::min(point.measures.size(), best.measures.size());
      if (is_better(*more, seeds, figure.of(best.measures.front())))
        other = OtherFigure{.figure = figure.name, .point = i, .more = *more};
    }
    if (!other) continue;
    if (figure.more_is_better)
      other->more = {-other->more.mean, -other->more.high, -other->more.low};
    out.push_back(*other);
  }
  return out;
}

// The best of the points with each other value of each setting.
std::vector<OtherValue> by_value(const Scheduled& s, const FleetFigure& objective) {
  std::map<std::pair<std::string, std::string>, OtherValue> found;
  std::vector<std::pair<std::string, std::string>> order;
  const SchedulePoint& best = s.points[s.best];
  const Pairs won = settings_of(best);
  for (std::size_t i = 0; i < s.points.size(); ++i) {
    const SchedulePoint& point = s.points[i];
    if (i == s.best || !may_win(point, true)) continue;
    const auto more = difference(point, best, objective);
    if (!more) continue;
    const Pairs pairs = settings_of(point);
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      if (pairs[k].second == won[k].second) continue;
      const auto at = found.find(pairs[k]);
      const double sign = sign_of(objective);
      if (at != found.end() && sign * at->second.more.mean <= sign * more->mean) continue;
      if (at == found.end()) order.push_back(pairs[k]);
      found[pairs[k]] = {
          .key = pairs[k].first, .value = pairs[k].second, .point = i, .more = *more};
    }
  }
  std::vector<OtherValue> out;
  for (const auto& key : order) {
    OtherValue& value = found[key];
    const auto same = sibling(s, key);
    if (same && may_win(s.points[*same], true) && *same != value.point) {
      const SchedulePoint &other = s.points[value.point], &only = s.points[*same];
      const auto more = difference(other, only, objective, sign_of(objective));
      value.changes =
          more && is_better(*more, std::min(other.measures.size(), only.measures.size()),
                            objective.of(only.measures.front()));
      const auto own = difference(only, best, objective);
      if (!value.changes && own) {
        value.point = *same;
        value.more = *own;
      }
    }
    out.push_back(value);
  }
  std::stable_sort(out.begin(), out.end(), [&](const OtherValue& a, const OtherValue& b) {
    const auto place = [&](const OtherValue& of) {
      return std::find_if(won.begin(), won.end(), [&](const auto& p) { return p.first == of.key; });
    };
    return place(a) < place(b);
  });
  return out;
}

}  // namespace

std::vector<PointDifference> differences_of(const Scheduled& s, const FleetFigure& objective) {
  std::vector<PointDifference> out;
  if (s.seeds < 2) return out;
  const SchedulePoint& best = s.points[s.best];
  for (std::size_t i = 0; i < s.points.size(); ++i) {
    const SchedulePoint& point = s.points[i];
    if (i == s.best || point.measures.empty() || best.measures.empty()) continue;
    out.push_back({.point = i,
                   .objective = difference(point, best, objective),
                   .completion_s = difference(point, best, fleet_figures().front()),
                   .wait_s = difference(point, best, figure_named("wait.mean"))});
  }
  return out;
}

BestReasons reasons_of(const Scheduled& s, const FleetFigure& objective) {
  BestReasons out;
  const SchedulePoint& best = s.points[s.best];
  if (s.points.size() < 2 || best.measures.empty() || !best.known) return out;
  const double sign = sign_of(objective);
  std::optional<std::pair<std::size_t, double>> unlimited;
  for (std::size_t i = 0; i < s.points.size(); ++i) {
    const SchedulePoint& point = s.points[i];
    if (i == s.best || !may_win(point, false)) continue;
    const auto more = difference(point, best, objective);
    if (!more) continue;
    const bool next = !out.runner_up || sign * more->mean < sign * out.more.mean;
    if (may_win(point, true) && next) {
      out.runner_up = i;
      out.more = *more;
    }
    if (sign * more->mean < (unlimited ? unlimited->second : 0)) unlimited = {i, sign * more->mean};
  }
  if (unlimited && !s.points[unlimited->first].kept) out.without_limits = unlimited->first;
  if (s.search.now && *s.search.now != s.best)
    out.now = difference(s.points[*s.search.now], best, objective);
  out.by_figure = by_figure(s, objective);
  out.by_value = by_value(s, objective);
  return out;
}

}  // namespace orrery
