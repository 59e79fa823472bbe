// SPDX-License-Identifier: Apache-2.0
// Groups scored rows and computes what gates hold.
#include "sim/validate/score/groups.h"

#include <algorithm>
#include <cmath>

#include "sim/base/statistics.h"
#include "sim/validate/score/ranking.h"

namespace orrery {
namespace {

class Groups {
 public:
  void add(const std::string& name, const ScoredRow& row) {
    const auto [at, added] = index_.emplace(name, groups_.size());
    if (added) groups_.push_back({.name = name, .rows = {}});
    groups_[at->second].rows.push_back(&row);
  }
  std::vector<RowGroup> take() { return std::move(groups_); }

 private:
  std::vector<RowGroup> groups_;
  std::map<std::string, std::size_t> index_;
};

// Share of the speeds that the 90% range misses, and its median width over the prediction.
void add_range_figures(const std::vector<const ScoredRow*>& rows, Figures& figures) {
  std::vector<double> widths;
  int missed = 0;
  for (const ScoredRow* s : rows) {
    if (!s->speed_error) continue;
    const RowPrediction& p = s->prediction;
    const double measured = p.tokens_per_second_per_gpu / (1 + *s->speed_error);
    if (measured < p.low_tokens || measured > p.high_tokens) ++missed;
    widths.push_back((p.high_tokens - p.low_tokens) / p.tokens_per_second_per_gpu);
  }
  if (widths.empty()) return;
  figures["not_covered"] = static_cast<double>(missed) / static_cast<double>(widths.size());
  figures["range_width"] = median(widths);
}

}  // namespace

std::vector<RowGroup> row_groups(const std::vector<ScoredRow>& rows) {
  Groups groups;
  constexpr std::int64_t large = 1024;
  for (const ScoredRow& s : rows) {
    const PreparedRow& row = *s.row;
    if (!row.full_config) continue;
    groups.add("all", s);
    groups.add(row.sweep ? "sweeps" : "published", s);
    if (row.model.has_experts()) groups.add("experts", s);
    if (!row.sweep && row.layout.gpus() >= large) groups.add("1,024 GPUs and more", s);
  }
  for (const ScoredRow& s : rows)
    if (s.row->full_config && !s.row->sweep) groups.add("published, " + s.row->gpu, s);
  for (const ScoredRow& s : rows)
    if (s.row->full_config) groups.add(s.row->source + ", " + s.row->gpu, s);
  for (const ScoredRow& s : rows)
    if (!s.row->full_config) groups.add("layout not wholly told", s);
  return groups.take();
}

Figures figures_of(const std::vector<const ScoredRow*>& rows) {
  GroupScore score;
  for (const ScoredRow* s : rows) add_row(score, *s);
  Figures figures;
  if (const auto speed = speed_numbers(score)) {
    figures["speed_median"] = speed->median;
    figures["speed_p90"] = speed->p90;
    figures["speed_bias"] = std::abs(speed->bias);
  }
  if (const auto peak = numbers(score.peak)) figures["peak_median"] = peak->median;
  if (const auto fixed = numbers(score.static_memory)) figures["static_median"] = fixed->median;
  const int wrong = score.oom_missed + score.oom_false;
  const int verdicts = wrong + score.oom_found + score.fit_found;
  if (verdicts > 0) figures["oom_wrong"] = static_cast<double>(wrong) / verdicts;
  const int ran_out = score.oom_found + score.oom_missed;
  if (ran_out > 0) figures["false_fits"] = static_cast<double>(score.oom_missed) / ran_out;
  add_range_figures(rows, figures);
  return figures;
}

std::vector<GroupFigures> group_figures(const std::vector<ScoredRow>& rows) {
  std::vector<GroupFigures> all;
  for (const RowGroup& group : row_groups(rows)) {
    GroupFigures g{.group = group.name,
                   .rows = static_cast<int>(group.rows.size()),
                   .figures = figures_of(group.rows)};
    if (group.name == "all") g.figures["skipped"] = skipped_share(rows).share();
    all.push_back(std::move(g));
  }
  const std::vector<RankedGroup> ranked = rank_groups(rows);
  for (const SourceRanking& r : rank_sources(ranked))
    all.push_back({.group = "order of layouts, " + r.source,
                   .rows = static_cast<int>(r.rows),
                   .figures = {{"rank_median_short", 1 - r.median_correlation},
                               {"loss_median", r.median_loss},
                               {"loss_worst", r.worst_loss}}});
  return all;
}

}  // namespace orrery
