// SPDX-License-Identifier: Apache-2.0
// Groups scored kernels by kind and size, holds their errors against what they may be, writes
// tables and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>

#include "sim/base/json/tree.h"
#include "sim/base/names.h"
#include "sim/base/sorting.h"
#include "sim/base/text/words.h"
#include "sim/calibrate/fit/score.h"
#include "sim/paper/tables.h"
#include "sim/validate/parts/kernels.h"
#include "sim/validate/score/report.h"

namespace orrery {
namespace {

using Rows = std::vector<const ScoredKernel*>;

// Regions by measured time.
struct TimeRegion {
  const char* name;   // of a column
  const char* words;  // in JSON
  double low, high;   // seconds
};
constexpr double no_end = 1e30;
constexpr TimeRegion any_length = {"all", "all", 0, no_end};
constexpr TimeRegion longer = {">20us", "from_20_us", short_kernel, no_end};
constexpr TimeRegion time_regions[] = {{"<20us", "below_20_us", 0, short_kernel},
                                       {"20us-.2ms", "from_20_us_to_200_us", short_kernel, 200e-6},
                                       {".2-2ms", "from_200_us_to_2_ms", 200e-6, 2e-3},
                                       {">2ms", "from_2_ms", 2e-3, no_end}};

constexpr std::array<KernelBar, 5> bars = {{{"products", 0.04, 0.12, short_kernel},
                                            {"attention", 0.06, 0.15, 0},
                                            {"memory-bound", 0.06, 0.15, 0},
                                            {"NCCL", 0.08, 0.20, 0},
                                            {"launches", 0.10, 0, 0}}};

std::vector<double> errors_in(const Rows& rows, const TimeRegion& region, bool held_out) {
  std::vector<double> errors;
  for (const ScoredKernel* row : rows)
    if (row->measured >= region.low && row->measured < region.high && (row->held_out || !held_out))
      errors.push_back(row->error());
  return errors;
}

bool keeps(const KernelBar& bar, const GroupNumbers& errors) {
  return errors.median <= bar.median && (bar.p90 == 0 || errors.p90 <= bar.p90);
}

std::string bar_text(const KernelBar& bar) {
  const std::string median = fmt::format("{:.0f}", 100 * bar.median);
  return bar.p90 > 0 ? fmt::format("{}/{:.0f}", median, 100 * bar.p90) : median;
}

// "yes", "no", or "over 20 us" where only the longer ones keep the bar.
std::string verdict_of(const Rows& rows, const KernelBar& bar) {
  const auto all = numbers(errors_in(rows, any_length, true));
  const auto over = numbers(errors_in(rows, longer, true));
  const bool long_ones = over && keeps(bar, *over);
  if (bar.shortest_judged > 0) return !over ? "" : long_ones ? "yes" : "no";
  return all && keeps(bar, *all) ? "yes" : long_ones ? "over 20 us" : "no";
}

// "gemm, s" for products that ran for seconds.
std::string words_of(const KernelGroup& group) {
  return group.mode == "sustained" ? group.kind + ", s" : group.kind;
}

void add_line(Table& table, const std::string& kind, const std::string& format, const Rows& rows,
              const KernelBar& bar) {
  const auto all_errors = errors_in(rows, any_length, true);
  const auto all = numbers(all_errors);
  if (!all) return;
  const auto over_errors = errors_in(rows, longer, true);
  const auto over = numbers(over_errors);
  table.add({kind, format, over ? std::to_string(over_errors.size()) : "",
             over ? percent_figure(over->median) : "", over ? percent_figure(over->p90) : "",
             std::to_string(all_errors.size()), percent_figure(all->median),
             percent_figure(all->p90), bar_text(bar), verdict_of(rows, bar)});
}

using Groups = std::vector<KernelGroup>;

// A line for each kind and format whatever the library, and one for each class of several kinds.
std::string kinds_table(Groups::const_iterator begin, Groups::const_iterator end) {
  Table table({"kernel", "fmt", ">20us", "med", "p90", "all", "med", "p90", "bar", "pass"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right, Align::left});
  for (const KernelBar& bar : bars) {
    std::vector<std::pair<std::string, std::string>> order;
    std::map<std::pair<std::string, std::string>, Rows> kinds;
    std::map<std::string, Rows> formats;
    for (auto group = begin; group != end; ++group) {
      if (&bar_of(group->kind) != &bar) continue;
      const std::pair key{words_of(*group), group->format};
      if (!kinds.contains(key)) order.push_back(key);
      kinds[key].insert(kinds[key].end(), group->rows.begin(), group->rows.end());
      if (group->mode == "sustained") continue;
      Rows& all = formats[group->format];
      all.insert(all.end(), group->rows.begin(), group->rows.end());
    }
    sort_stably(order, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& key : order) add_line(table, key.first, key.second, kinds[key], bar);
    for (const auto& of_format : formats) {
      const std::string& format = of_format.first;
      const auto several = std::count_if(order.begin(), order.end(), [&](const auto& key) {
        return key.second == format && !key.first.ends_with(", s");
      });
      if (several > 1)
        add_line(table, std::string(bar.name) + ", all", format, of_format.second, bar);
    }
  }
  return table.text();
}

// A line for each kind, format and library; cells of a region: rows, median / 90th percentile.
std::string regions_table(Groups::const_iterator begin, Groups::const_iterator end) {
  std::vector<std::string> header = {"kernel", "fmt", "library"};
  for (const TimeRegion& region : time_regions) header.push_back(region.name);
  Table table(header, {Align::left, Align::left, Align::left});
  for (auto group = begin; group != end; ++group) {
    std::vector<std::string> cells = {words_of(*group), group->format, group->library};
    for (const TimeRegion& region : time_regions) {
      const auto errors = errors_in(group->rows, region, true);
      const auto n = numbers(errors);
      cells.push_back(n ? fmt::format("{} {}/{}", errors.size(), short_percent_figure(n->median),
                                      short_percent_figure(n->p90))
                        : "");
    }
    if (std::any_of(cells.begin() + 3, cells.end(), [](const auto& c) { return !c.empty(); }))
      table.add(cells);
  }
  return table.text();
}

}  // namespace

const KernelBar& bar_of(const std::string& kind) {
  if (kind == "launch") return bars[4];
  if (collective_kind_text.find(kind)) return bars[3];
  if (kind.starts_with("attention")) return bars[1];
  return kind.ends_with("gemm") ? bars[0] : bars[2];
}

std::vector<KernelGroup> group_kernels(const std::vector<ScoredKernel>& rows) {
  std::vector<KernelGroup> groups;
  std::map<std::array<std::string, 6>, std::size_t> index;
  for (const ScoredKernel& row : rows) {
    const auto [at, added] = index.emplace(
        std::array{row.device, row.source, row.kind, row.format, row.library, row.mode},
        groups.size());
    if (added)
      groups.push_back({.device = row.device,
                        .source = row.source,
                        .kind = row.kind,
                        .format = row.format,
                        .library = row.library,
                        .mode = row.mode});
    groups[at->second].rows.push_back(&row);
  }
  const auto place = [](const KernelGroup& g) {
    return std::tuple<const std::string&, const std::string&, std::ptrdiff_t, const std::string&>(
        g.device, g.source, &bar_of(g.kind) - bars.data(), g.kind);
  };
  sort_stably(groups,
              [&](const KernelGroup& a, const KernelGroup& b) { return place(a) < place(b); });
  return groups;
}

std::string kernels_text(const std::vector<ScoredKernel>& rows, bool each_row, bool detailed) {
  std::string out;
  if (each_row)
    for (const ScoredKernel& r : rows)
      out += fmt::format("{:<14} {:<18} {:<5} {:<15} {:<40} {:>+7.1f}% of {:>10.1f} us{}\n",
                         r.device, r.kind, r.format, r.library, r.shape, 100 * r.error(),
                         1e6 * r.measured, r.held_out ? ", held out" : "");
  out +=
      "\nTime of single kernels, calls and launches, predicted against measured, of shapes and "
      "sizes\n"
      "held out of every fit: |error| in percent (median, 90th percentile), of those over 20 us, "
      "then\n"
      "of all; bar: what it may be, for products of those over 20 us; \"s\": ran for seconds, "
      "under\n"
      "the power limit, which no fit saw\n";
  if (detailed)
    out +=
        "Second tables: by library and by how long a kernel takes; rows, median/90th percentile\n";
  const Groups groups = group_kernels(rows);
  for (auto begin = groups.begin(); begin != groups.end();) {
    const auto end = std::find_if(begin, groups.end(), [&](const KernelGroup& g) {
      return g.device != begin->device || g.source != begin->source;
    });
    out += fmt::format("\n{}, measured by {}\n{}", begin->device, begin->source,
                       kinds_table(begin, end));
    if (detailed) out += "\n" + regions_table(begin, end);
    begin = end;
  }
  return out;
}

void add_kernels_json(const std::vector<ScoredKernel>& rows, Json& row_list, Json& group_list) {
  for (const ScoredKernel& r : rows)
    row_list.push_back({{"id", fmt::format("{} {} {}", r.kind, r.format, r.shape)},
                        {"quantity", "time"},
                        {"unit", "s"},
                        {"predicted", r.predicted},
                        {"measured", r.measured},
                        {"error", r.error()},
                        {"group", {{"source", r.source}, {"gpu", r.device}}},
                        {"skipped", nullptr},
                        {"library", r.library},
                        {"mode", r.mode},
                        {"held_out", r.held_out}});
  for (const KernelGroup& group : group_kernels(rows)) {
    const KernelBar& bar = bar_of(group.kind);
    Json out = {{"kind", "kernel"},
                {"source", group.source},
                {"gpu", group.device},
                {"work", group.kind},
                {"format", group.format},
                {"library", group.library},
                {"mode", group.mode},
                {"rows", group.rows.size()},
                {"class", bar.name},
                {"bar_median", bar.median},
                {"bar_p90", bar.p90 > 0 ? Json(bar.p90) : Json(nullptr)}};
    std::vector<TimeRegion> regions = {any_length, longer};
    regions.insert(regions.end(), std::begin(time_regions), std::end(time_regions));
    for (const TimeRegion& region : regions) {
      out[region.words] = numbers_json(errors_in(group.rows, region, false));
      out[std::string(region.words) + "_held_out"] =
          numbers_json(errors_in(group.rows, region, true));
    }
    group_list.push_back(out);
  }
}

}  // namespace orrery
