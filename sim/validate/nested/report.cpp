// SPDX-License-Identifier: Apache-2.0
// Prints nested errors.
#include "sim/validate/nested/report.h"

#include <fmt/format.h>

#include "sim/base/sorting.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }
std::string signed_percent(double share) { return fmt::format("{:+.1f}", 100 * share); }
std::string whole_percent(double share) { return fmt::format("{:.0f}", 100 * share); }

std::string shortened(const std::string& text) {
  constexpr std::size_t most = 40;
  return columns(text) > most ? text.substr(0, most - 1) + "…" : text;
}

std::string sets_text(const std::vector<NestedSet>& sets) {
  Table table({"", "groups", "points", "rows", "median", "p90", "bias", "+-", "points'", "p90",
               "covered", "of error", "score"},
              {Align::left});
  for (const NestedSet& set : sets) {
    const NestedNumbers n = nested_numbers(set.points);
    table.add({set.name, fmt::format("{}", n.groups), fmt::format("{}", n.points),
               fmt::format("{}", n.rows), percent(n.median), percent(n.p90), signed_percent(n.bias),
               percent(n.bias_error), percent(n.point_median), percent(n.point_p90),
               whole_percent(n.covered), fmt::format("{:.1f}", n.width),
               fmt::format("{:.2f}", n.score)});
  }
  return table.text();
}

std::string groups_text(const std::vector<NestedPoint>& points) {
  std::vector<const NestedPoint*> all;
  for (const NestedPoint& p : points) all.push_back(&p);
  std::vector<NestedGroup> groups = nested_groups(all);
  sort_stably(groups, [](const NestedGroup& a, const NestedGroup& b) { return a.error > b.error; });
  Table table({"family", "source", "points", "rows", "error", "bias", "covered"},
              {Align::left, Align::left});
  for (const NestedGroup& g : groups)
    table.add({shortened(g.family), shortened(g.source), fmt::format("{}", g.points),
               fmt::format("{}", g.rows), percent(g.error), signed_percent(g.bias),
               whole_percent(g.covered)});
  return table.text();
}

Json set_json(const NestedNumbers& n) {
  return {{"groups", n.groups},
          {"points", n.points},
          {"rows", n.rows},
          {"median", n.median},
          {"p90", n.p90},
          {"bias", n.bias},
          {"bias_standard_error", n.bias_error},
          {"point_median", n.point_median},
          {"point_p90", n.point_p90},
          {"covered", n.covered},
          {"width_over_error", n.width},
          {"interval_score", n.score}};
}

}  // namespace

std::string nested_text(const std::vector<NestedPoint>& points) {
  return "Each family of each source, predicted by fits that saw neither the family nor the\n"
         "source, with no condition of a stack that names the model. Errors of speed in percent:\n"
         "over groups of family and source, by the median of each, and over operating points;\n"
         "bias: the mean over groups, with its standard error. Of the 90% ranges: the share of\n"
         "points inside (mean over groups), the width over the median error, the interval score\n" +
         sets_text(nested_sets(points)) + "\n" + groups_text(points);
}

Json nested_json(const std::vector<NestedPoint>& points) {
  Json sets = Json::array();
  for (const NestedSet& set : nested_sets(points)) {
    Json one = {{"set", set.name}};
    one.update(set_json(nested_numbers(set.points)));
    sets.push_back(one);
  }
  std::vector<const NestedPoint*> all;
  for (const NestedPoint& p : points) all.push_back(&p);
  Json groups = Json::array();
  for (const NestedGroup& g : nested_groups(all))
    groups.push_back({{"family", g.family},
                      {"source", g.source},
                      {"points", g.points},
                      {"rows", g.rows},
                      {"error", g.error},
                      {"bias", g.bias},
                      {"covered", g.covered}});
  return {{"sets", sets}, {"groups", groups}};
}

}  // namespace orrery
