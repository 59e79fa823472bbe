// SPDX-License-Identifier: Apache-2.0
// Compares the predicted order of layouts with the measured one, and prints it.
#include "sim/validate/score/ranking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/statistics.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

// What layout a gets out of its comparison with b: 1 it is better, 0 worse, 1/2 neither.
double share_of(double a, double b) {
  if (a == b) return 0.5;
  return a > b ? 1 : 0;
}

bool tied(const RankedLayout& a, const RankedLayout& b) {
  return std::max(a.measured, b.measured) <= std::min(a.measured, b.measured) * (1 + rerun_spread);
}

// Pearson's correlation; 1 where the first list does not vary, since then there is no order to
// miss.
double correlation(const std::vector<double>& measured, const std::vector<double>& predicted) {
  const double m = mean(measured), p = mean(predicted);
  double both = 0, own = 0, other = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    both += (measured[i] - m) * (predicted[i] - p);
    own += (measured[i] - m) * (measured[i] - m);
    other += (predicted[i] - p) * (predicted[i] - p);
  }
  if (own == 0) return 1;
  return other == 0 ? 0 : both / std::sqrt(own * other);
}

std::string job_text(const RankedGroup& g) {
  return fmt::format("{} on {} {}, batch {} of {}", g.model, g.gpus, g.gpu, g.global_batch,
                     g.sequence);
}

// What tells apart models of one name: a design's candidates share theirs.
std::array<std::int64_t, 4> shape_of(const Model& m) {
  if (m.layers.empty()) return {m.hidden, 0, 0, 0};
  const LayerClass& last = m.layer(m.layer_count() - 1);
  return {m.hidden, m.layer_count(), last.mixer.heads, last.ffn.width};
}

Json group_json(const RankedGroup& g) {
  return {{"source", g.source},
          {"gpu", g.gpu},
          {"model", g.model},
          {"n_gpus", g.gpus},
          {"global_batch", g.global_batch},
          {"seq", g.sequence},
          {"rows", g.rows},
          {"rank_correlation", g.ranking.correlation},
          {"pairs", g.ranking.pairs},
          {"pairs_in_order", g.ranking.in_order},
          {"first", g.ranking.first},
          {"best", g.ranking.best},
          {"loss", g.ranking.loss}};
}

}  // namespace

OrderScore rank_layouts(const std::vector<RankedLayout>& layouts) {
  CHECK_THAT(!layouts.empty(), "a ranking of nothing");
  OrderScore r;
  std::vector<double> measured(layouts.size()), predicted(layouts.size());
  for (std::size_t i = 0; i < layouts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const RankedLayout &a = layouts[i], &b = layouts[j];
      const bool tie = tied(a, b);
      const double order = tie ? 0.5 : share_of(a.measured, b.measured);
      const double ours = tie ? 0.5 : share_of(a.predicted, b.predicted);
      measured[i] += order;
      measured[j] += 1 - order;
      predicted[i] += ours;
      predicted[j] += 1 - ours;
      if (tie) continue;
      r.pairs += 1;
      r.in_order += 1 - std::abs(order - ours);
    }
  r.correlation = correlation(measured, predicted);
  const auto most = [&](double RankedLayout::*figure) {
    return std::max_element(
        layouts.begin(), layouts.end(),
        [figure](const RankedLayout& a, const RankedLayout& b) { return a.*figure < b.*figure; });
  };
  const auto first = most(&RankedLayout::predicted), best = most(&RankedLayout::measured);
  r.first = first->id;
  r.best = best->id;
  r.loss = 1 - first->measured / best->measured;
  return r;
}

std::vector<RankedGroup> rank_groups(const std::vector<ScoredRow>& rows) {
  using Key = std::tuple<std::string, std::string, std::string, std::array<std::int64_t, 4>,
                         std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, std::size_t> index;
  std::vector<RankedGroup> groups;
  std::vector<std::vector<RankedLayout>> layouts;
  for (const ScoredRow& s : rows) {
    const PreparedRow& r = *s.row;
    if (!s.speed_error || !r.full_config || !r.outside.empty()) continue;
    if (!r.measured.tokens_per_second_per_gpu) continue;
    const RankedGroup group{.source = r.source,
                            .gpu = r.gpu,
                            .model = r.model.name,
                            .gpus = r.layout.gpus(),
                            .global_batch = r.job.global_batch,
                            .sequence = r.job.sequence};
    const Key key{group.source, group.gpu,          group.model,   shape_of(r.model),
                  group.gpus,   group.global_batch, group.sequence};
    const auto [at, added] = index.emplace(key, groups.size());
    if (added) {
      groups.push_back(group);
      layouts.emplace_back();
    }
    layouts[at->second].push_back({.id = r.id,
                                   .predicted = s.prediction.tokens_per_second_per_gpu,
                                   .measured = *r.measured.tokens_per_second_per_gpu});
  }
  std::vector<RankedGroup> ranked;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (layouts[i].size() < ranked_rows) continue;
    groups[i].rows = layouts[i].size();
    groups[i].ranking = rank_layouts(layouts[i]);
    ranked.push_back(groups[i]);
  }
  return ranked;
}

std::vector<SourceRanking> rank_sources(const std::vector<RankedGroup>& groups) {
  std::vector<SourceRanking> sources;
  for (const RankedGroup& g : groups)
    if (std::none_of(sources.begin(), sources.end(),
                     [&g](const SourceRanking& s) { return s.source == g.source; }))
      sources.push_back({.source = g.source});
  for (SourceRanking& s : sources) {
    std::vector<double> correlations, losses;
    double pairs = 0, in_order = 0;
    for (const RankedGroup& g : groups) {
      if (g.source != s.source) continue;
      s.rows += g.rows;
      correlations.push_back(g.ranking.correlation);
      losses.push_back(g.ranking.loss);
      pairs += g.ranking.pairs;
      in_order += g.ranking.in_order;
      if (!s.least_ordered || g.ranking.correlation < s.least_ordered->ranking.correlation)
        s.least_ordered = &g;
      if (!s.costliest || g.ranking.loss > s.costliest->ranking.loss) s.costliest = &g;
    }
    s.groups = losses.size();
    s.median_correlation = median(correlations);
    s.worst_correlation = s.least_ordered->ranking.correlation;
    s.in_order = pairs > 0 ? in_order / pairs : 1;
    s.median_loss = median(losses);
    s.worst_loss = s.costliest->ranking.loss;
  }
  return sources;
}

std::string ranking_text(const std::vector<ScoredRow>& rows) {
  const std::vector<RankedGroup> groups = rank_groups(rows);
  if (groups.empty()) return "";
  Table table({"source", "groups", "rows", "rank", "worst", "in order", "loses", "worst"},
              {Align::left});
  std::string worst;
  for (const SourceRanking& s : rank_sources(groups)) {
    table.add({s.source.size() > 26 ? s.source.substr(0, 25) + "…" : s.source,
               fmt::format("{}", s.groups), fmt::format("{}", s.rows),
               fmt::format("{:.3f}", s.median_correlation),
               fmt::format("{:.3f}", s.worst_correlation), fmt::format("{:.1f}", 100 * s.in_order),
               fmt::format("{:.1f}", 100 * s.median_loss),
               fmt::format("{:.1f}", 100 * s.worst_loss)});
    const OrderScore& least = s.least_ordered->ranking;
    const OrderScore& most = s.costliest->ranking;
    worst +=
        wrap(fmt::format("{}: least in order ({:.3f}): {}; first choice {}, best {}", s.source,
                         least.correlation, job_text(*s.least_ordered), least.first, least.best),
             page_width, "  ", "    ");
    if (most.loss > rerun_spread)
      worst +=
          wrap(fmt::format("{}: first choice loses most ({:.1f}%): {}; {} instead of {}", s.source,
                           100 * most.loss, job_text(*s.costliest), most.first, most.best),
               page_width, "  ", "    ");
  }
  return fmt::format(
             "\nOrder of layouts at one model, number of accelerators, batch and sequence, in "
             "groups "
             "of {} and\nmore: rank correlation (median group, worst), pairs in order in percent, "
             "and what the layout\nthat the prediction puts first loses to the best, in percent. "
             "Figures within {:.0f}% are ties\n",
             ranked_rows, 100 * rerun_spread) +
         table.text() + worst;
}

Json ranking_json(const std::vector<ScoredRow>& rows) {
  const std::vector<RankedGroup> groups = rank_groups(rows);
  Json sources = Json::array(), list = Json::array();
  for (const SourceRanking& s : rank_sources(groups))
    sources.push_back({{"source", s.source},
                       {"groups", s.groups},
                       {"rows", s.rows},
                       {"median_rank_correlation", s.median_correlation},
                       {"worst_rank_correlation", s.worst_correlation},
                       {"share_of_pairs_in_order", s.in_order},
                       {"median_loss", s.median_loss},
                       {"worst_loss", s.worst_loss}});
  for (const RankedGroup& g : groups) list.push_back(group_json(g));
  return {{"spread", rerun_spread}, {"sources", sources}, {"groups", list}};
}

}  // namespace orrery
