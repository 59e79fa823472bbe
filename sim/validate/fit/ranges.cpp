// SPDX-License-Identifier: Apache-2.0
// Scores ranges by group and writes the model's error.
#include "sim/validate/fit/ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/json/tree.h"
#include "sim/base/statistics.h"
#include "sim/paper/tables.h"
#include "sim/validate/score/predict.h"

namespace orrery {
namespace {

// One row's range, wherever it comes from.
struct RangedRow {
  const PreparedRow* row = nullptr;
  bool covered = false;
  double width = 0, error = 0;
  int by_others = -1;  // 1: covered by the errors of other sources
};

void add(RangeGroup& group, const RangedRow& r) {
  ++group.rows;
  group.covered += r.covered ? 1 : 0;
  group.widths.push_back(r.width);
  group.errors.push_back(std::abs(r.error));
  if (r.by_others >= 0)
    group.covered_by_others = std::max(0, group.covered_by_others) + r.by_others;
}

std::vector<RangeGroup> grouped(const std::vector<RangedRow>& rows) {
  std::vector<RangeGroup> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  for (const RangedRow& r : rows) {
    const auto [at, added] = index.emplace(std::pair{r.row->source, r.row->gpu}, groups.size());
    if (added) groups.push_back({.source = r.row->source, .gpu = r.row->gpu});
    add(groups[at->second], r);
  }
  std::vector<RangeGroup> overall = {{.source = "all"},
                                     {.source = "published (without sweeps)"},
                                     {.source = "sweeps"},
                                     {.source = "experts (MoE)"}};
  for (const RangedRow& r : rows) {
    add(overall[0], r);
    add(overall[r.row->sweep ? 2 : 1], r);
    if (r.row->model.has_experts()) add(overall[3], r);
  }
  groups.insert(groups.end(), overall.begin(), overall.end());
  return groups;
}

double share_of(int count, const RangeGroup& g) {
  return static_cast<double>(count) / static_cast<double>(std::max(1, g.rows));
}

// The errors of each source's rows predicted by those of all others.
std::map<std::string, ModelError> errors_of_others(const std::vector<BlindResidual>& residuals,
                                                   const ModelError& shared) {
  std::map<std::string, ModelError> errors;
  for (const BlindResidual& r : residuals) errors.emplace(r.source, shared);
  for (auto& [source, error] : errors) {
    std::vector<BlindResidual> others;
    for (const BlindResidual& r : residuals)
      if (r.source != source) others.push_back(r);
    if (!others.empty()) error = fit_model_error(others, {.shared = &shared});
  }
  return errors;
}

std::vector<RangeGroup> blind_groups(const std::vector<BlindRow>& rows, const ModelError& error) {
  const auto residuals = blind_residuals(rows);
  const auto others = errors_of_others(blind_residuals(ordinary(rows)), error);
  std::vector<RangedRow> ranged;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].row->row->outside.empty()) continue;
    const RangeScore score = score_range(residuals[i], error);
    const auto found = others.find(residuals[i].source);
    const ModelError& foreign = found == others.end() ? error : found->second;
    const bool by_others = score_range(residuals[i], foreign).covered;
    ranged.push_back({.row = rows[i].row->row,
                      .covered = score.covered,
                      .width = score.width,
                      .error = rows[i].speed_error,
                      .by_others = by_others ? 1 : 0});
  }
  return grouped(ranged);
}

}  // namespace

std::string error_text(const ModelError& error) {
  Table table({"error beyond the stated ranges", "rows", "sources", "slower by", "faster by"},
              {Align::left});
  const auto line = [&table](const std::string& name, const ErrorRegion& region) {
    table.add({name, fmt::format("{}", region.rows), fmt::format("{}", region.sources),
               fmt::format("{:.1f}%", 100 * std::expm1(region.above)),
               fmt::format("{:.1f}%", 100 * -std::expm1(-region.below))});
  };
  line("all", error.whole);
  for (const auto& [name, region] : error.regions) line(name, region);
  return "\n" + table.text() +
         fmt::format(
             "Errors grow by {:.0f}% with a tenth of the step more in exposed communication, by "
             "{:.0f}% from a\nfifth of the memory free to none\n",
             100 * std::expm1(0.1 * error.difficulty.exposed.slope),
             100 * std::expm1(error.difficulty.near_limit.slope)) +
         fmt::format(
             "The stated ranges of values count by {:.0f}%, of families that no run had by "
             "{:.0f}%; "
             "{:.1f}% between\nruns that are alike, {:.1f}% for each assumed setting; "
             "{:.0f}% on a device, {:.0f}% of a stack, {:.0f}% in a\n"
             "precision that no row has, {:.1f}% for each doubling of {:.0f} GPUs\n",
             100 * error.stated_share, 100 * error.new_share, 100 * error.run_to_run,
             100 * error.blank, 100 * error.unseen.device, 100 * error.unseen.stack,
             100 * error.unseen.precision, 100 * error.unseen.doubling, error.seen.most_gpus);
}

std::vector<RangeGroup> range_groups(const std::vector<ScoredRow>& rows) {
  std::vector<RangedRow> ranged;
  for (const ScoredRow& s : rows) {
    if (!is_scored(s)) continue;
    if (!s.row->outside.empty()) continue;
    const RowPrediction& p = s.prediction;
    const double measured = p.tokens_per_second_per_gpu / (1 + *s.speed_error);
    ranged.push_back({.row = s.row,
                      .covered = p.low_tokens <= measured && measured <= p.high_tokens,
                      .width = (p.high_tokens - p.low_tokens) / p.tokens_per_second_per_gpu,
                      .error = *s.speed_error});
  }
  return grouped(ranged);
}

std::string ranges_text(const std::vector<RangeGroup>& groups) {
  const bool others = std::any_of(groups.begin(), groups.end(),
                                  [](const RangeGroup& g) { return g.covered_by_others >= 0; });
  std::vector<std::string> titles = {"90% ranges", "GPU",      "rows", "covered",
                                     "width",      "of error", "tail"};
  if (others) titles.push_back("by others");
  titles.push_back("");
  std::vector<Align> align(titles.size(), Align::right);
  align[0] = align[1] = align.back() = Align::left;
  Table table(titles, align);
  for (const RangeGroup& g : groups) {
    if (g.rows == 0) continue;
    const double covered = share_of(g.covered, g), width = median(g.widths);
    const double error = median(g.errors);
    std::string note;
    constexpr int enough = 20;
    if (g.rows >= enough && covered < 0.85) note = "too narrow";
    if (g.rows >= enough && covered > 0.95) note = "wider than need be";
    const double tail = error > 0 ? percentile(g.errors, 90) / error : 0;
    std::vector<std::string> cells = {
        columns(g.source) > 40 ? g.source.substr(0, 39) + "…" : g.source,
        g.gpu,
        fmt::format("{}", g.rows),
        fmt::format("{:.1f}%", 100 * covered),
        fmt::format("{:.0f}%", 100 * width),
        error > 0 ? fmt::format("{:.1f}", width / error) : "",
        error > 0 ? fmt::format("{:.1f}", tail) : ""};
    if (others)
      cells.push_back(g.covered_by_others < 0
                          ? ""
                          : fmt::format("{:.0f}%", 100 * share_of(g.covered_by_others, g)));
    cells.push_back(note);
    table.add(cells);
  }
  return "\nHow often 90% ranges hold what was measured, their median width and what it is of the\n"
         "median error; tail: the error's 90th percentile over its median (above 2.5, no width "
         "that\n"
         "is alike for all of the group's rows holds nine of ten within five median errors)\n" +
         table.text();
}

Json ranges_json(const std::vector<RangeGroup>& groups) {
  Json list = Json::array();
  for (const RangeGroup& g : groups) {
    if (g.rows == 0) continue;
    Json one = {{"source", g.source},
                {"gpu", g.gpu},
                {"rows", g.rows},
                {"covered", share_of(g.covered, g)},
                {"median_width", median(g.widths)},
                {"median_absolute_error", median(g.errors)},
                {"p90_absolute_error", percentile(g.errors, 90)}};
    if (g.covered_by_others >= 0)
      one["covered_by_other_sources"] = share_of(g.covered_by_others, g);
    list.push_back(one);
  }
  return list;
}

std::vector<BlindResidual> blind_residuals(const std::vector<BlindRow>& rows, ErrorCells cells) {
  std::vector<BlindResidual> residuals;
  for (const BlindRow& b : rows) {
    const PreparedRow& row = *b.row->row;
    // Runs that are alike have the same prediction, and the same columns that it does not see.
    const std::string twin = fmt::format("{}|{}|{}|{}|{}|{}|{}", row.source, row.gpu,
                                         row.model.name, to_text(row.layout), row.release,
                                         row.job.global_batch, b.row->prediction.step_seconds);
    residuals.push_back(
        {.run = b.row->prediction.run,
         .source = row.source,
         .cell = row.source + ", " + (cells == ErrorCells::devices ? row.gpu : row.family),
         .twin = twin,
         .log_error = std::log1p(b.speed_error),
         .stated = b.row->prediction.stated});
  }
  return residuals;
}

std::optional<BlindError> blind_error(const std::vector<BlindRow>& rows, int threads) {
  const std::vector<BlindRow> known = ordinary(rows);
  if (known.empty()) return std::nullopt;
  BlindError out{.fitted = fit_model_error(blind_residuals(known), {.threads = threads})};

  out.groups = blind_groups(rows, out.fitted);
  return out;
}

}  // namespace orrery
