// SPDX-License-Identifier: Apache-2.0
// Prints nested errors, writes and reads their file.
#include "sim/validate/nested/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw_models/catalogue_hash.h"
#include "sim/base/json/json.h"
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

double ratio(const TransferLine& line) {
  return line.numbers.median / std::max(1e-6, line.nested_median);
}

std::string sets_text(const std::vector<NestedLine>& sets) {
  Table table({"", "groups", "points", "rows", "median", "p90", "bias", "+-", "points'", "p90",
               "covered", "of error", "score"},
              {Align::left});
  for (const NestedLine& line : sets) {
    const NestedNumbers& n = line.numbers;
    table.add({line.set, fmt::format("{}", n.groups), fmt::format("{}", n.points),
               fmt::format("{}", n.rows), percent(n.median), percent(n.p90), signed_percent(n.bias),
               percent(n.bias_error), percent(n.point_median), percent(n.point_p90),
               whole_percent(n.covered), fmt::format("{:.1f}", n.width),
               fmt::format("{:.2f}", n.score)});
  }
  return table.text();
}

std::string transfers_text(const std::vector<TransferLine>& transfers) {
  Table table({"", "groups", "points", "rows", "median", "p90", "bias", "nested", "ratio"},
              {Align::left});
  for (const TransferLine& t : transfers)
    table.add({t.name, fmt::format("{}", t.numbers.groups), fmt::format("{}", t.numbers.points),
               fmt::format("{}", t.numbers.rows), percent(t.numbers.median), percent(t.numbers.p90),
               signed_percent(t.numbers.bias), percent(t.nested_median),
               fmt::format("{:.2f}", ratio(t))});
  return table.text();
}

std::string groups_text(std::vector<NestedGroup> groups) {
  sort_stably(groups, [](const NestedGroup& a, const NestedGroup& b) { return a.error > b.error; });
  Table table({"family", "source", "points", "rows", "error", "bias", "covered"},
              {Align::left, Align::left});
  for (const NestedGroup& g : groups)
    table.add({shortened(g.family), shortened(g.source), fmt::format("{}", g.points),
               fmt::format("{}", g.rows), percent(g.error), signed_percent(g.bias),
               whole_percent(g.covered)});
  return table.text();
}

// Keys of the file, each with its figure.
template <class Numbers, class Visit>
void visit_numbers(Numbers& n, Visit&& visit) {
  visit("groups", n.groups);
  visit("points", n.points);
  visit("rows", n.rows);
  visit("median", n.median);
  visit("p90", n.p90);
  visit("bias", n.bias);
  visit("bias_standard_error", n.bias_error);
  visit("point_median", n.point_median);
  visit("point_p90", n.point_p90);
  visit("covered", n.covered);
  visit("width_over_error", n.width);
  visit("interval_score", n.score);
}

template <class Group, class Visit>
void visit_group(Group& g, Visit&& visit) {
  visit("points", g.points);
  visit("rows", g.rows);
  visit("error", g.error);
  visit("bias", g.bias);
  visit("covered", g.covered);
}

void read_number(const JsonValue& at, int& to) { to = static_cast<int>(at.integer()); }
void read_number(const JsonValue& at, double& to) { to = at.number(); }

}  // namespace

NestedErrors nested_errors(const std::vector<NestedPoint>& points,
                           std::vector<TransferLine> transfers) {
  NestedErrors errors{
      .catalogue = catalogue_hash(), .sets = {}, .groups = {}, .transfers = std::move(transfers)};
  for (const NestedSet& set : nested_sets(points))
    errors.sets.push_back({.set = set.name, .numbers = nested_numbers(set.points)});
  std::vector<const NestedPoint*> all;
  for (const NestedPoint& p : points) all.push_back(&p);
  errors.groups = nested_groups(all);
  return errors;
}

std::string nested_text(const NestedErrors& errors) {
  return "Each family of each source, predicted by fits that saw neither the family nor the\n"
         "source, with what launch programs set for the model and no other condition that names\n"
         "it. Errors of speed in percent: over groups of family and source, by the median of\n"
         "each, and over operating points; bias: the mean over groups, with its standard error.\n"
         "Of the 90% ranges: the share of points inside (mean over groups), the width over the\n"
         "median error, the interval score\n" +
         sets_text(errors.sets) +
         "\nFits that saw one kind of run predict another; nested: the median of the same runs "
         "above\n" +
         transfers_text(errors.transfers) + "\n" + groups_text(errors.groups);
}

std::string served_nested_text(const NestedErrors& errors) {
  return "Each family of models of each campaign of served runs, predicted by values of its stack\n"
         "that saw neither. Errors in percent: over groups of family, engine and campaign, by the\n"
         "median of each, and over rows; bias, +-, and ranges as for training. Formulas were "
         "chosen\n"
         "with these runs in sight, which no value that is left out undoes\n" +
         sets_text(errors.sets) + "\n" + groups_text(errors.groups);
}

Json nested_json(const NestedErrors& errors) {
  Json sets = Json::array(), groups = Json::array();
  for (const NestedLine& line : errors.sets) {
    Json one = {{"set", line.set}};
    visit_numbers(line.numbers, [&](const char* key, auto value) { one[key] = value; });
    sets.push_back(one);
  }
  for (const NestedGroup& g : errors.groups) {
    Json one = {{"family", g.family}, {"source", g.source}};
    visit_group(g, [&](const char* key, auto value) { one[key] = value; });
    groups.push_back(one);
  }
  Json transfers = Json::array();
  for (const TransferLine& t : errors.transfers) {
    Json one = {{"transfer", t.name}, {"nested_median", t.nested_median}};
    visit_numbers(t.numbers, [&](const char* key, auto value) { one[key] = value; });
    transfers.push_back(one);
  }
  return {{"catalogue", errors.catalogue},
          {"sets", sets},
          {"groups", groups},
          {"transfers", transfers}};
}

NestedErrors load_nested(const std::filesystem::path& file) {
  const JsonValue json = JsonValue::load(file);
  json.expect_only({"catalogue", "sets", "groups", "transfers"});
  NestedErrors errors{
      .catalogue = json.at("catalogue").text(), .sets = {}, .groups = {}, .transfers = {}};
  for (const JsonValue& set : json.at("sets").items()) {
    NestedLine& line = errors.sets.emplace_back();
    line.set = set.at("set").text();
    visit_numbers(line.numbers,
                  [&](const char* key, auto& value) { read_number(set.at(key), value); });
  }
  for (const JsonValue& group : json.at("groups").items()) {
    NestedGroup& g = errors.groups.emplace_back();
    g.family = group.at("family").text();
    g.source = group.at("source").text();
    visit_group(g, [&](const char* key, auto& value) { read_number(group.at(key), value); });
  }
  for (const JsonValue& transfer : json.at("transfers").items()) {
    TransferLine& line = errors.transfers.emplace_back();
    line.name = transfer.at("transfer").text();
    line.nested_median = transfer.at("nested_median").number();
    visit_numbers(line.numbers,
                  [&](const char* key, auto& value) { read_number(transfer.at(key), value); });
  }
  return errors;
}

std::vector<GroupFigures> nested_figures(const NestedErrors& errors) {
  std::vector<GroupFigures> figures;
  for (const NestedLine& line : errors.sets)
    figures.push_back({.group = "nested, " + line.set,
                       .rows = line.numbers.rows,
                       .figures = {{"nested_median", line.numbers.median},
                                   {"nested_p90", line.numbers.p90},
                                   {"nested_not_covered", 1 - line.numbers.covered}}});
  for (const TransferLine& t : errors.transfers)
    figures.push_back(
        {.group = "transfer, " + t.name,
         .rows = t.numbers.rows,
         .figures = {{"transfer_median", t.numbers.median}, {"transfer_over_nested", ratio(t)}}});
  return figures;
}

}  // namespace orrery
