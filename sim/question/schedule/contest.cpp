// SPDX-License-Identifier: Apache-2.0
// Drops points that are surely not the best, until one surely is.
#include "sim/question/schedule/contest.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "sim/outcome/fleet/fleet_bounds.h"

namespace orrery {

// The point of the least bound is run first; points whose bound lies above it are not run.
void Contest::rule_out(std::size_t seeds) {
  for (SchedulePoint& point : out_.points) {
    const std::int64_t gpus =
        point.asked.shape.gpus() -
        std::int64_t{point.asked.question.breakdowns.spare_hosts} * point.asked.shape.gpus_per_host;
    double sum = 0;
    for (std::size_t run = 0; run < seeds; ++run)
      sum +=
          least_mean_completion(without_replicas(runs_.list(point, run), *point.asked.jobs), gpus)
              .si();
    point.bound = sum / static_cast<double>(seeds);
  }
  const auto first = std::min_element(
      out_.points.begin(), out_.points.end(),
      [](const SchedulePoint& a, const SchedulePoint& b) { return a.bound < b.bound; });
  runs_.run({static_cast<std::size_t>(first - out_.points.begin())}, 0, seeds);
  if (runs_.ends_now() || first->measures.empty()) return;
  const double reached = mean_over_seeds(values_of(*first, seeds)).high;
  const bool is_whole = std::none_of(first->measures.begin(), first->measures.end(),
                                     [](const FleetMeasures& m) { return m.rejected > 0; });
  for (SchedulePoint& point : out_.points)
    point.ruled_out = &point != &*first && is_known(*first) && is_whole &&
                      keeps(limits_, first->measures) && point.bound > reached;
}

// Whoever looks several times is wrong once in as many more: each look asks for its part.
double Contest::chance_of_a_look() const {
  int looks = 1;
  for (std::int64_t seeds = first_seeds; seeds < out_.seeds; seeds *= 2) ++looks;
  return 1 - (1 - *out_.confidence) / looks;
}

void Contest::race() {
  const double enough = chance_of_a_look();
  std::size_t seeds = static_cast<std::size_t>(first_seeds);
  // A bound of all jobs says nothing of those that a horizon cuts off.
  const bool bounded = out_.objective == "completion.mean" && !out_.settings.has("horizon");
  if (bounded) rule_out(seeds);
  for (std::size_t p = 0; p < out_.points.size(); ++p)
    if (!out_.points[p].ruled_out) alive_.push_back(p);
  std::vector<std::size_t> open;
  for (const std::size_t p : alive_)
    if (out_.points[p].measures.empty()) open.push_back(p);
  runs_.run(open, 0, seeds);
  while (!runs_.ends_now()) {
    weigh(alive_, seeds);
    const auto most = [&](std::size_t a, std::size_t b) {
      return out_.points[a].chance < out_.points[b].chance;
    };
    const std::size_t first = *std::max_element(alive_.begin(), alive_.end(), most);
    const auto limit = static_cast<std::size_t>(out_.seeds);
    if (out_.points[first].chance >= enough || seeds == limit || alive_.size() == 1) return;
    const double hopeless = (1 - *out_.confidence) / 10 / static_cast<double>(out_.points.size());
    std::erase_if(alive_, [&](std::size_t p) { return out_.points[p].chance < hopeless; });
    const std::size_t next = std::min(2 * seeds, limit);
    runs_.run(alive_, seeds, next);
    seeds = next;
  }
}

void Contest::run_all() {
  for (std::size_t p = 0; p < out_.points.size(); ++p) alive_.push_back(p);
  runs_.run(alive_, 0, static_cast<std::size_t>(out_.seeds));
}

// Of the first seeds.
std::vector<double> Contest::values_of(const SchedulePoint& point, std::size_t seeds) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(seeds, point.measures.size()); ++i)
    values.push_back(figure_.value(point.measures[i]));
  return values;
}

bool Contest::is_known(const SchedulePoint& point) const {
  return std::all_of(point.measures.begin(), point.measures.end(),
                     [&](const FleetMeasures& m) { return figure_.is_known(m); });
}

// Chances of points by their first seeds, of those that turn away fewest jobs; of these of those
// that keep the limits if some do, and of these of those whose figure is known.
void Contest::weigh(const std::vector<std::size_t>& alive, std::size_t seeds) {
  double fewest = std::numeric_limits<double>::infinity();
  for (const std::size_t p : alive) {
    SchedulePoint& point = out_.points[p];
    point.kept = keeps(limits_, point.measures);
    point.chance = 0;
    point.known = is_known(point);
    point.turned_away = 0;
    const std::size_t runs = std::min(seeds, point.measures.size());
    for (std::size_t i = 0; i < runs; ++i)
      point.turned_away +=
          static_cast<double>(point.measures[i].rejected) / static_cast<double>(runs);
    fewest = std::min(fewest, point.turned_away);
  }
  std::vector<std::size_t> good;
  for (const std::size_t p : alive) {
    out_.points[p].takes_most = out_.points[p].turned_away <= fewest;
    if (out_.points[p].takes_most) good.push_back(p);
  }
  for (bool SchedulePoint::*is : {&SchedulePoint::kept, &SchedulePoint::known}) {
    const auto has = [&](std::size_t p) { return out_.points[p].*is; };
    if (std::any_of(good.begin(), good.end(), has))
      std::erase_if(good, [&](std::size_t p) { return !has(p); });
  }
  std::vector<std::vector<double>> values;
  for (const std::size_t p : good) values.push_back(values_of(out_.points[p], seeds));
  if (values.empty() || values.front().size() < 2) return;
  const std::vector<double> chances = chances_of_least(values, out_.seed);
  for (std::size_t i = 0; i < good.size(); ++i) out_.points[good[i]].chance = chances[i];
}

void Contest::choose() {
  std::vector<std::size_t> full;
  std::size_t seeds = std::numeric_limits<std::size_t>::max();
  for (const std::size_t p : alive_)
    if (!out_.points[p].measures.empty()) {
      full.push_back(p);
      seeds = std::min(seeds, out_.points[p].measures.size());
    }
  out_.search.compared = full.empty() ? 0 : seeds;
  weigh(full, seeds);
  std::optional<std::size_t> best;
  for (const std::size_t p : full) {
    const SchedulePoint& point = out_.points[p];
    if (best && out_.points[*best].standing() > point.standing()) continue;
    const bool better = !best || point.standing() > out_.points[*best].standing() ||
                        mean_over_seeds(values_of(point, seeds)).mean <
                            mean_over_seeds(values_of(out_.points[*best], seeds)).mean;
    if (better) best = p;
  }
  out_.best = best.value_or(0);
}

}  // namespace orrery
