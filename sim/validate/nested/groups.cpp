// SPDX-License-Identifier: Apache-2.0
// Joins rows to operating points, points to groups of family and source, groups to numbers.
#include "sim/validate/nested/groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/statistics.h"
#include "sim/validate/fit/ranges.h"

namespace orrery {
namespace {

using Group = std::pair<std::string, std::string>;  // family and source

constexpr double one_vote = 0;  // of each group, however many rows it has

ModelError error_without(const std::vector<BlindRow>& rows,
                         const std::vector<BlindResidual>& residuals, const Group& group,
                         const ModelError& shared) {
  std::vector<BlindResidual> others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PreparedRow& row = *rows[i].row->row;
    if (!is_odd(row) && row.family != group.first && row.source != group.second)
      others.push_back(residuals[i]);
  }
  return error_of_others(others, shared);
}

double of_speed(double log_error) { return std::expm1(log_error); }

template <class Points, class Value>
std::vector<double> values(const Points& points, Value value) {
  std::vector<double> out;
  for (const auto& p : points) out.push_back(value(p));
  return out;
}

}  // namespace

ModelError nested_error(const std::vector<BlindRow>& rows, const std::vector<BlindRow>& blind,
                        const ModelError& shipped, int threads) {
  const std::vector<BlindRow> known = ordinary(rows), known_blind = ordinary(blind);
  if (known.empty()) return shipped;
  ModelError error = fit_model_error(blind_residuals(known, ErrorCells::families),
                                     {.cell_power = one_vote, .threads = threads});
  std::vector<BlindResidual> measured = blind_residuals(known_blind);
  std::erase_if(measured, [](const BlindResidual& r) { return !r.run.program.empty(); });
  if (!measured.empty()) {
    ModelError seen = fit_model_error(
        measured,
        {.threads = threads, .regions = measured_regions, .shared = &error, .like_measured = true});
    error.stated_share = seen.stated_share;
    error.regions.merge(seen.regions);
  }
  error.collectives = shipped.collectives;
  error.memory = shipped.memory;
  return error;
}

std::string operating_point(const PreparedRow& row) {
  const Layout& l = row.layout;
  return fmt::format("{}|{}|{}|{}|{}|{} {} {} {} {} {}|{} {}|{}|{}|{}", row.source, row.gpu,
                     row.model.name, row.release, to_text(l.precision), l.tp, l.pp, l.cp, l.ep,
                     l.etp, l.vpp, l.micro_batch, row.job.sequence, l.zero_stage,
                     to_text(l.recompute_choice()), to_text(row.job.task));
}

std::vector<NestedPoint> nested_points(const std::vector<BlindRow>& rows,
                                       const std::vector<BlindRow>& evidence,
                                       const ModelError& shared) {
  const std::vector<BlindResidual> residuals = blind_residuals(rows, ErrorCells::families);
  const std::vector<BlindResidual> known = blind_residuals(evidence, ErrorCells::families);
  std::map<Group, ModelError> errors;
  std::map<std::string, std::vector<std::size_t>> points;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PreparedRow& row = *rows[i].row->row;
    const Group group{row.family, row.source};
    if (!errors.contains(group))
      errors.emplace(group, error_without(evidence, known, group, shared));
    points[operating_point(row)].push_back(i);
  }
  std::vector<NestedPoint> out;
  for (const auto& [key, list] : points) {
    const PreparedRow& first = *rows[list.front()].row->row;
    NestedPoint point{
        .family = first.family,
        .source = first.source,
        .generation = std::string(to_text(first.cluster->cluster.device.architecture)),
        .precision = std::string(to_text(first.layout.precision)),
        .sweep = first.sweep,
        .experts = first.model.has_experts(),
        .outside = !first.outside.empty(),
        .rows = static_cast<int>(list.size())};
    std::vector<double> log_errors, widths;
    for (const std::size_t i : list) {
      const RangeScore range = score_range(residuals[i], errors.at({point.family, point.source}));
      log_errors.push_back(std::log1p(rows[i].speed_error));
      widths.push_back(range.length);
      point.covered += (range.covered ? 1.0 : 0.0) / point.rows;
      point.score += range.score / point.rows;
      point.most_gpus = std::max(point.most_gpus, rows[i].row->row->layout.gpus());
    }
    point.log_error = median(log_errors);
    point.width = median(widths);
    out.push_back(std::move(point));
  }
  return out;
}

ModelError error_of_others(const std::vector<BlindResidual>& others, const ModelError& shared) {
  if (others.empty()) return shared;
  ModelError of_new = shared;
  of_new.stated_share = shared.new_share;
  return fit_model_error(others, {.cell_power = one_vote, .shared = &of_new});
}

std::vector<NestedGroup> nested_groups(const std::vector<const NestedPoint*>& points) {
  std::map<Group, std::vector<const NestedPoint*>> groups;
  for (const NestedPoint* p : points) groups[{p->family, p->source}].push_back(p);
  std::vector<NestedGroup> out;
  for (const auto& [key, list] : groups) {
    NestedGroup group{
        .family = key.first, .source = key.second, .points = static_cast<int>(list.size())};
    for (const NestedPoint* p : list) group.rows += p->rows;
    group.error =
        median(values(list, [](const auto* p) { return std::abs(of_speed(p->log_error)); }));
    group.bias = median(values(list, [](const auto* p) { return of_speed(p->log_error); }));
    group.covered = mean(values(list, [](const auto* p) { return p->covered; }));
    group.width = median(values(list, [](const auto* p) { return p->width; }));
    group.score = mean(values(list, [](const auto* p) { return p->score; }));
    out.push_back(std::move(group));
  }
  return out;
}

NestedNumbers nested_numbers(const std::vector<const NestedPoint*>& points) {
  const std::vector<NestedGroup> groups = nested_groups(points);
  NestedNumbers n{.groups = static_cast<int>(groups.size()),
                  .points = static_cast<int>(points.size())};
  if (groups.empty()) return n;
  for (const NestedPoint* p : points) n.rows += p->rows;
  const auto errors = values(groups, [](const auto& g) { return g.error; });
  const auto biases = values(groups, [](const auto& g) { return g.bias; });
  const auto each = values(points, [](const auto* p) { return std::abs(of_speed(p->log_error)); });
  n.median = median(errors);
  n.p90 = percentile(errors, 90);
  n.point_median = median(each);
  n.point_p90 = percentile(each, 90);
  n.bias = mean(biases);
  n.bias_error = sample_deviation(biases) / std::sqrt(static_cast<double>(groups.size()));
  n.covered = mean(values(groups, [](const auto& g) { return g.covered; }));
  n.width = median(values(groups, [](const auto& g) { return g.width; })) / n.median;
  n.score = mean(values(groups, [](const auto& g) { return g.score; }));
  return n;
}

std::vector<NestedSet> nested_sets(const std::vector<NestedPoint>& points) {
  std::vector<NestedSet> sets;
  const auto add = [&](const std::string& name, const auto& belongs) {
    NestedSet set{.name = name, .points = {}};
    for (const NestedPoint& p : points)
      if (belongs(p)) set.points.push_back(&p);
    if (!set.points.empty()) sets.push_back(std::move(set));
  };
  const auto published = [](const NestedPoint& p) { return !p.sweep && !p.outside; };
  const auto of = [&](const std::string& one, const std::string& other) {
    return [=](const NestedPoint& p) {
      return published(p) && (p.generation == one || p.generation == other);
    };
  };
  constexpr std::int64_t large = 1024;
  add("all published", published);
  add("Hopper and Ampere", of("hopper", "ampere"));
  add("Blackwell", of("blackwell", "blackwell-ultra"));
  add("experts", [&](const NestedPoint& p) { return published(p) && p.experts; });
  add("1,024 accelerators and more",
      [&](const NestedPoint& p) { return published(p) && p.most_gpus >= large; });
  add("published, odd rows too", [](const NestedPoint& p) { return !p.sweep; });
  add("sweeps", [](const NestedPoint& p) { return p.sweep; });
  std::set<std::pair<std::string, std::string>> kinds;
  for (const NestedPoint& p : points) kinds.emplace(p.generation, p.precision);
  for (const auto& kind : kinds)
    add(kind.first + ", " + kind.second, [&](const NestedPoint& p) {
      return published(p) && p.generation == kind.first && p.precision == kind.second;
    });
  return sets;
}

}  // namespace orrery
