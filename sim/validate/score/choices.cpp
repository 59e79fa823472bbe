// SPDX-License-Identifier: Apache-2.0
// Collects the choices that published runs allow, and prints what ours would lose.
#include "sim/validate/score/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/statistics.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

std::string best_text(const PublishedChoice& c, const std::string& id) {
  for (std::size_t i = 0; i < c.layouts.size(); ++i)
    if (c.layouts[i].id == id) return fmt::format("{} ({})", c.texts[i], id);
  return id;
}

double predicted(const PublishedChoice& c, const std::string& id) {
  for (const RankedLayout& l : c.layouts)
    if (l.id == id) return l.predicted;
  return 0;
}

}  // namespace

std::vector<std::vector<const ScoredRow*>> published_jobs(const std::vector<ScoredRow>& rows) {
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, PrecisionRecipe, std::string>;
  std::map<Key, std::size_t> index;
  std::vector<std::vector<const ScoredRow*>> jobs;
  for (const ScoredRow& s : rows) {
    const PreparedRow& r = *s.row;
    if (!s.speed_error || !r.full_config || !r.outside.empty() || r.sweep) continue;
    if (!r.measured.tokens_per_second_per_gpu) continue;
    const Key key{r.source,        r.gpu,
                  r.model.name,    r.model.layer_count(),
                  r.layout.gpus(), r.job.global_batch,
                  r.job.sequence,  r.layout.precision,
                  r.release};
    const auto [at, added] = index.emplace(key, jobs.size());
    if (added) jobs.emplace_back();
    jobs[at->second].push_back(&s);
  }
  return jobs;
}

std::vector<PublishedChoice> published_choices(const std::vector<ScoredRow>& rows) {
  std::vector<PublishedChoice> all;
  for (const auto& job : published_jobs(rows)) {
    const PreparedRow& first = *job.front()->row;
    PublishedChoice c{.source = first.source,
                      .gpu = first.gpu,
                      .model = first.model.name,
                      .gpus = first.layout.gpus(),
                      .global_batch = first.job.global_batch,
                      .sequence = first.job.sequence,
                      .precision = first.layout.precision};
    for (const ScoredRow* s : job) {
      const PreparedRow& r = *s->row;
      const std::string text = to_text(r.layout);
      // The same layout measured twice is no choice.
      if (std::find(c.texts.begin(), c.texts.end(), text) != c.texts.end()) continue;
      c.texts.push_back(text);
      c.layouts.push_back({.id = r.id,
                           .predicted = s->prediction.tokens_per_second_per_gpu,
                           .measured = *r.measured.tokens_per_second_per_gpu});
    }
    all.push_back(std::move(c));
  }
  std::erase_if(all, [](const PublishedChoice& c) { return c.layouts.size() < 2; });
  for (PublishedChoice& c : all) {
    c.ranking = rank_layouts(c.layouts);
    c.predicted_gain = predicted(c, c.ranking.first) / predicted(c, c.ranking.best) - 1;
  }
  return all;
}

std::string choices_text(const std::vector<ScoredRow>& rows) {
  const std::vector<PublishedChoice> all = published_choices(rows);
  if (all.empty()) return "";
  std::vector<double> losses;
  std::size_t right = 0, cannot_tell = 0;
  std::string wrong;
  for (const PublishedChoice& c : all) {
    losses.push_back(c.ranking.loss);
    if (c.ranking.loss <= rerun_spread) {
      ++right;
    } else if (c.predicted_gain <= rerun_spread) {
      ++cannot_tell;
    }
    if (c.ranking.loss <= rerun_spread) continue;
    wrong +=
        wrap(fmt::format("{}, {} on {} {}, batch {} of {}, {}: {} in place of {} loses {:.1f}%; "
                         "predicted to gain {:.1f}%{}",
                         c.source, c.model, c.gpus, c.gpu, c.global_batch, c.sequence,
                         to_text(c.precision), best_text(c, c.ranking.first),
                         best_text(c, c.ranking.best), 100 * c.ranking.loss, 100 * c.predicted_gain,
                         c.predicted_gain <= rerun_spread ? ", within the noise" : ""),
             page_width, "  ", "    ");
  }
  return "\n" +
         wrap(fmt::format(
                  "Choices among published layouts of one job: in {} of {} jobs the layout that is "
                  "predicted to be fastest is the measured best or within {:.0f}% of it; in {} "
                  "more the prediction says that they lie within the noise. Median loss {:.1f}%.",
                  right, all.size(), 100 * rerun_spread, cannot_tell, 100 * median(losses)),
              page_width, "", "") +
         wrong;
}

}  // namespace orrery
