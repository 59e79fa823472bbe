// SPDX-License-Identifier: Apache-2.0
// Finds, for each family without the winner, the layout that shows best what it lacks.
#include "sim/advise/rejections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "sim/base/parallel.h"
#include "sim/base/sorting.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/step/series.h"
#include "sim/engine/step/step.h"
#include "sim/explain/explain.h"

namespace orrery {
namespace {

using Key = std::array<std::int64_t, 3>;  // tp, pp, ep

struct Group {
  std::vector<Place> families;
  std::int64_t leaves = 0, rejected = 0;
};

std::map<Key, Group> groups_of(const SearchGround& ground, const SearchResult& found) {
  std::map<Key, Group> groups;
  for (std::size_t r = 0; r < found.families.size(); ++r)
    for (std::size_t f = 0; f < found.families[r].size(); ++f) {
      const Place place{static_cast<std::int32_t>(r), static_cast<std::int32_t>(f), {}};
      const Layout& base = ground.family(place).base;
      Group& group = groups[{base.tp, base.pp, base.ep}];
      group.families.push_back(place);
      group.leaves += found.families[r][f].leaves;
      group.rejected += found.families[r][f].rejected;
    }
  return groups;
}

MemoryVerdict verdict_of(const SearchGround& ground, const Place& at) {
  return memory_fit(ground.model, ground.job, ground.family(at).layout(at.point),
                    ground.recipe(at).stack, ground.device);
}

// The nearest miss of a family: everything that saves memory.
MemoryVerdict nearest_miss(const SearchGround& ground, Place at) {
  const Family& f = ground.family(at);
  std::optional<MemoryVerdict> nearest;
  at.point.offload = choices(f.offloads) - 1;
  for (at.point.recompute = 0; at.point.recompute < choices(f.recomputes); ++at.point.recompute) {
    const RecomputeOption& again = choice(f.recomputes, at.point.recompute);
    if (choices(f.recomputes) > 1 &&
        (again.choice.recompute != Recompute::full || again.layers > 0))
      continue;
    for (at.point.shard = 0; at.point.shard < choices(f.shards); ++at.point.shard) {
      const ShardOption& shard = choice(f.shards, at.point.shard);
      at.point.zero = choices(shard.zero_stages) - 1;
      MemoryVerdict v = verdict_of(ground, at);
      if (!nearest || v.margin > nearest->margin) nearest = std::move(v);
    }
  }
  return std::move(*nearest);
}

std::string name_of(const Key& key, bool experts) {
  std::string name = fmt::format("TP{} PP{}", key[0], key[1]);
  if (experts) name += fmt::format(" EP{}", key[2]);
  return name;
}

class Explainer {
 public:
  Explainer(const SearchGround& ground, const SearchResult& found,
            const std::vector<Simplified>& simplified)
      : ground_(ground), found_(found), simplified_(simplified) {
    if (found.best.empty()) return;
    winner_ = &found.best.front();
    winner_time_ = where(*winner_);
  }
  Rejection explain(const Key& key, const Group& group) const {
    Rejection out{.family = name_of(key, ground_.model.has_experts()), .layouts = group.leaves};
    std::optional<Found> fastest;
    std::optional<MemoryVerdict> nearest;
    for (const Place& family : group.families) {
      const FamilyOutcome& outcome = found_.families[static_cast<std::size_t>(family.recipe)]
                                                    [static_cast<std::size_t>(family.family)];
      if (outcome.rejected == outcome.leaves) {
        MemoryVerdict v = nearest_miss(ground_, family);
        if (!nearest || v.margin > nearest->margin) nearest = std::move(v);
        continue;
      }
      std::optional<Found> one = outcome.best ? outcome.best : outcome.first;
      if (one && (!fastest || better(*one, *fastest))) fastest = std::move(one);
    }
    if (fastest) fastest = as_listed(*fastest);
    if (fastest && winner_) {
      out.fits = out.run = true;
      // One that is not listed has all its settings: a tie, should it be ahead by these.
      out.slower = std::max(0.0, fastest->score / winner_->score - 1);
      out.reason = explain_difference(winner_->candidate.layout, winner_time_,
                                      fastest->candidate.layout, where(*fastest));
    } else if (nearest) {
      out.margin = nearest->margin;
      out.reason = nearest->reason;
    } else {
      out.fits = true;
      out.reason = "what might fit is slower than all that is listed, whatever its memory";
    }
    return out;
  }
  bool holds_winner(const Group& group) const {
    return winner_ &&
           std::any_of(group.families.begin(), group.families.end(), [&](const Place& p) {
             return p.recipe == winner_->place.recipe && p.family == winner_->place.family;
           });
  }

 private:
  const Found& as_listed(const Found& f) const {
    const auto at = std::find_if(simplified_.begin(), simplified_.end(),
                                 [&](const Simplified& s) { return s.exact.place == f.place; });
    return at == simplified_.end() ? f : at->shown;
  }
  StageBreakdown where(const Found& f) const {
    return mean_breakdown(step(ground_.context, ground_.model, ground_.job, f.candidate.layout,
                               ground_.recipe(f.place).stack));
  }

  const SearchGround& ground_;
  const SearchResult& found_;
  const std::vector<Simplified>& simplified_;
  const Found* winner_ = nullptr;
  StageBreakdown winner_time_;
};

}  // namespace

std::vector<Rejection> explain_rejections(const SearchGround& ground, const SearchResult& found,
                                          const std::vector<Simplified>& simplified, int threads) {
  const std::map<Key, Group> groups = groups_of(ground, found);
  const Explainer explainer(ground, found, simplified);
  std::vector<const std::pair<const Key, Group>*> asked;
  for (const auto& group : groups)
    if (!explainer.holds_winner(group.second)) asked.push_back(&group);
  std::vector<Rejection> out(asked.size());
  parallel_for(asked.size(), threads, [&](std::size_t i) {
    out[i] = explainer.explain(asked[i]->first, asked[i]->second);
  });
  sort_stably(out, [](const Rejection& a, const Rejection& b) {
    if (a.fits != b.fits) return a.fits;
    if (a.run != b.run) return a.run;
    return a.fits ? a.slower < b.slower : a.margin > b.margin;
  });
  return out;
}

}  // namespace orrery
