// SPDX-License-Identifier: Apache-2.0
// Scores predictions of measured collectives by region and writes tables and JSON.
#include "sim/validate/parts/collectives_report.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/paper/tables.h"
#include "sim/validate/score/report.h"

namespace orrery {
namespace {

constexpr const char* across = "across";
std::string reach_of(const MeasuredCollective& row) {
  return row.crosses() ? across : "one domain";
}

// "H100" for "H100-SXM5-80GB".
std::string bare_gpu(const std::string& gpu) { return gpu.substr(0, gpu.find('-')); }

std::string detail_of(const MeasuredCollective& row) {
  return row.mode.empty() ? row.collective : row.collective + " " + row.mode;
}

void add_to(CollectiveGroup& group, const ScoredCollective& s) {
  ++group.rows;
  if (!s.error) return;
  RegionScore& region = s.row->large() ? group.large : group.small;
  region.all.push_back(*s.error);
  if (s.row->held_out) region.held_out.push_back(*s.error);
}

// Rows with the same names share a group.
template <class NamesOf>
std::vector<CollectiveGroup> grouped(const std::vector<ScoredCollective>& rows, NamesOf names_of) {
  std::vector<CollectiveGroup> groups;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> index;
  for (const ScoredCollective& s : rows) {
    CollectiveGroup named = names_of(*s.row);
    const auto [at, added] = index.emplace(
        std::tuple{named.gpu, named.reach, named.library, named.collective}, groups.size());
    if (added) groups.push_back(std::move(named));
    add_to(groups[at->second], s);
  }
  return groups;
}

void add_cells(std::vector<std::string>& cells, const RegionScore& region) {
  const auto all = numbers(region.all), held_out = numbers(region.held_out);
  cells.push_back(all ? fmt::format("{}", region.all.size()) : "");
  cells.push_back(all ? percent_figure(all->median) : "");
  cells.push_back(all ? percent_figure(all->p90) : "");
  cells.push_back(all ? fmt::format("{:+.1f}", 100 * all->bias) : "");
  cells.push_back(held_out ? percent_figure(held_out->median) : "");
}

// Cells before the errors: machine and collective in a section of one library and reach, else what
// the section would say.
std::string table_text(const std::vector<CollectiveGroup>& groups, bool section) {
  std::vector<std::string> header = {"GPU"};
  if (section)
    header.emplace_back("collective");
  else
    header.insert(header.end(), {"domains", "library"});
  const std::vector<Align> align(header.size(), Align::left);
  for (int region = 0; region < 2; ++region)
    header.insert(header.end(), {"rows", "med", "p90", "bias", "held"});
  Table table(header, align);
  for (const CollectiveGroup& g : groups) {
    if (g.small.all.empty() && g.large.all.empty()) continue;
    std::vector<std::string> cells = {bare_gpu(g.gpu)};
    if (section)
      cells.push_back(g.collective);
    else
      cells.insert(cells.end(), {g.reach.empty()     ? ""
                                 : g.reach == across ? "more"
                                                     : "one",
                                 g.library});
    add_cells(cells, g.small);
    add_cells(cells, g.large);
    table.add(cells);
  }
  return table.empty() ? "" : table.text();
}

// A table for every library and reach, as lines of all would pass the width of a page.
std::string sections_text(const std::vector<CollectiveGroup>& groups) {
  std::vector<std::pair<std::string, std::vector<CollectiveGroup>>> sections;
  for (const CollectiveGroup& g : groups) {
    const std::string title = g.library + ", " + g.reach;
    const auto same = [&title](const auto& section) { return section.first == title; };
    auto at = std::find_if(sections.begin(), sections.end(), same);
    if (at == sections.end()) at = sections.insert(at, {title, {}});
    at->second.push_back(g);
  }
  std::string out;
  for (const auto& [title, members] : sections) {
    const std::string table = table_text(members, true);
    if (!table.empty()) out += fmt::format("\n{}\n{}", title, table);
  }
  return out;
}

std::string row_line(const ScoredCollective& s) {
  const MeasuredCollective& r = *s.row;
  if (!s.skipped.empty()) return fmt::format("{:<44} skipped: {}\n", r.id, s.skipped);
  const CollectiveTime& t = *s.prediction;
  return fmt::format("{:<44} {:>+7.1f}% {:>10.1f} us for {:>10.1f} | {} | {} of {} | {} {}\n", r.id,
                     100 * s.error.value_or(0), in_microseconds(t.time),
                     1e6 * r.measured.value_or(0), r.cluster->name, r.call.group.size,
                     r.call.group.per_domain, to_text(t.algorithm), to_text(t.protocol));
}

std::string skipped_text(const std::vector<ScoredCollective>& rows) {
  std::map<std::string, int> reasons;
  for (const ScoredCollective& s : rows)
    if (!s.skipped.empty()) ++reasons[s.skipped];
  std::string out = reasons.empty() ? "" : "\nCollectives not scored, and why\n";
  for (const auto& [reason, count] : reasons)
    out += wrap(fmt::format("{}  {}", count, reason), page_width, "  ", "        ");
  return out;
}

Json region_json(const std::vector<double>& errors) {
  Json out = numbers_json(errors);
  if (out.is_null()) return out;
  // measured / predicted, between which nine rows of ten lie: what model_error.json holds.
  std::vector<double> ratios;
  for (const double error : errors) ratios.push_back(1 / (1 + error));
  constexpr double low = 5, high = 95;
  out["measured_low"] = percentile(ratios, low);
  out["measured_high"] = percentile(ratios, high);
  return out;
}

Json group_json(const CollectiveGroup& g, const char* kind) {
  return {{"kind", kind},
          {"gpu", g.gpu},
          {"reach", g.reach},
          {"library", g.library},
          {"collective", g.collective},
          {"rows", g.rows},
          {"below_1_mib", region_json(g.small.all)},
          {"below_1_mib_held_out", region_json(g.small.held_out)},
          {"from_1_mib", region_json(g.large.all)},
          {"from_1_mib_held_out", region_json(g.large.held_out)}};
}

Json row_json(const ScoredCollective& s) {
  const MeasuredCollective& row = *s.row;
  Json out = {{"id", row.id}, {"quantity", "time"}, {"unit", "s"}};
  const bool made = s.prediction.has_value();
  out["predicted"] = made ? Json(s.prediction->time.si()) : Json(nullptr);
  out["measured"] = row.measured ? Json(*row.measured) : Json(nullptr);
  out["error"] = s.error ? Json(*s.error) : Json(nullptr);
  out["low"] = made ? Json(s.low) : Json(nullptr);
  out["high"] = made ? Json(s.high) : Json(nullptr);
  out["group"] = {{"source", row.source}, {"gpu", row.gpu}};
  out["skipped"] = s.skipped.empty() ? Json(nullptr) : Json(s.skipped);
  out["library"] = row.library;
  out["collective"] = row.collective;
  out["mode"] = row.mode;
  out["ranks"] = row.call.group.size;
  out["ranks_per_domain"] = row.call.group.per_domain;
  out["bytes"] = row.call.bytes.si();
  const std::int64_t sms = row.call.exchange.sms;
  out["sms"] = sms > 0 ? Json(sms) : Json(nullptr);
  out["held_out"] = row.held_out;
  out["algorithm"] = made ? Json(to_text(s.prediction->algorithm)) : Json(nullptr);
  out["protocol"] = made ? Json(to_text(s.prediction->protocol)) : Json(nullptr);
  out["cluster"] = row.cluster != nullptr ? Json(row.cluster->name) : Json(nullptr);
  out["assumed"] = row.assumed;
  return out;
}

}  // namespace

std::vector<CollectiveGroup> group_collectives(const std::vector<ScoredCollective>& rows,
                                               bool detailed) {
  return grouped(rows, [detailed](const MeasuredCollective& row) {
    return CollectiveGroup{.gpu = row.gpu,
                           .reach = reach_of(row),
                           .library = row.library,
                           .collective = detailed ? detail_of(row) : ""};
  });
}

std::vector<CollectiveGroup> total_collectives(const std::vector<ScoredCollective>& rows) {
  auto groups = grouped(rows, [](const MeasuredCollective& row) {
    return CollectiveGroup{
        .gpu = "all", .reach = reach_of(row), .library = row.library, .collective = ""};
  });
  CollectiveGroup all{.gpu = "all", .reach = "", .library = "", .collective = ""};
  for (const ScoredCollective& s : rows) add_to(all, s);
  groups.push_back(std::move(all));
  return groups;
}

std::string collectives_text(const std::vector<ScoredCollective>& rows, bool each_row,
                             bool detailed) {
  std::string out;
  if (each_row)
    for (const ScoredCollective& s : rows) out += row_line(s);
  out +=
      "\nTime of collectives, predicted against measured, in percent: |error| (median, 90th\n"
      "percentile), its median with sign (bias: above 0 is too slow) and median |error| of rows\n"
      "held out of every fit; first messages below 1 MiB, then from 1 MiB on\n";
  const auto groups = group_collectives(rows, detailed);
  out += detailed ? sections_text(groups) : table_text(groups, false);
  out += "\n" + table_text(total_collectives(rows), false);
  return out + skipped_text(rows);
}

void add_collectives_json(const std::vector<ScoredCollective>& rows, Json& row_list,
                          Json& group_list) {
  for (const ScoredCollective& s : rows) row_list.push_back(row_json(s));
  for (const CollectiveGroup& g : group_collectives(rows, true))
    group_list.push_back(group_json(g, "collective"));
  for (const CollectiveGroup& g : total_collectives(rows))
    group_list.push_back(group_json(g, "collectives overall"));
}

}  // namespace orrery
