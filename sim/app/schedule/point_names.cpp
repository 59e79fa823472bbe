// SPDX-License-Identifier: Apache-2.0
// Joins what differs between points.
#include "sim/app/schedule/point_names.h"

#include <algorithm>

namespace orrery {

namespace {

constexpr std::size_t most_shown = 24;    // that tables show all of
constexpr std::size_t shown_points = 12;  // of more: the best

}  // namespace

std::string point_name(const SchedulePoint& p) {
  std::string name = p.asked.policy + ", " + p.asked.place;
  for (const auto& [key, words] : p.varied) name += ", " + key + " " + words;
  return name;
}

std::vector<const SchedulePoint*> run_points(const Scheduled& s) {
  std::vector<const SchedulePoint*> points;
  for (const SchedulePoint& p : s.points)
    if (!p.measures.empty()) points.push_back(&p);
  // All of many would make tables that nobody reads.
  if (points.size() <= most_shown) return points;
  const FleetFigure& figure = figure_named(s.objective);
  const auto value = [&](const SchedulePoint* p) {
    return mean_of(*p, [&](const FleetMeasures& m) { return figure.value(m); });
  };
  std::stable_sort(points.begin(), points.end(), [&](const auto* a, const auto* b) {
    if (a->standing() != b->standing()) return a->standing() > b->standing();
    return value(a) < value(b);
  });
  points.resize(shown_points);
  return points;
}

void name_columns(const Scheduled& s, std::vector<std::string>& head, std::vector<Align>& align) {
  head = {"policy", "place"};
  for (const auto& [key, words] : s.points.front().varied) head.push_back(key);
  align.assign(head.size(), Align::left);
}

std::vector<std::string> name_cells(const SchedulePoint& p) {
  std::vector<std::string> cells = {p.asked.policy, p.asked.place};
  for (const auto& [key, words] : p.varied) cells.push_back(words);
  return cells;
}

double mean_of(const SchedulePoint& point, const std::function<double(const FleetMeasures&)>& of) {
  double sum = 0;
  for (const FleetMeasures& m : point.measures) sum += of(m);
  return sum / static_cast<double>(std::max<std::size_t>(1, point.measures.size()));
}

double mean_share(const SchedulePoint& point, double FleetShares::*member) {
  return mean_of(point, [&](const FleetMeasures& m) { return m.shares.*member; });
}

}  // namespace orrery
