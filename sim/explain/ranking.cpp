// SPDX-License-Identifier: Apache-2.0
// Times the best layouts at the ends of the ranges of uncertain values.
#include "sim/explain/ranking.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/parallel.h"
#include "sim/base/sorting.h"
#include "sim/engine/network/loaded_transfer.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/assumptions.h"
#include "sim/outcome/extrapolation.h"
#include "sim/outcome/host_power.h"
#include "sim/outcome/noise.h"

namespace orrery {
namespace {

constexpr std::size_t most_values = 12;  // of the first contender

std::vector<std::string> paths_to_move(const std::vector<Assumption>& assumptions,
                                       std::vector<Scenario>& scenarios) {
  std::vector<std::string> paths;
  std::set<std::string> known;
  for (const Assumption& a : assumptions) {  // largest first
    if (std::max(std::abs(a.effect_low), std::abs(a.effect_high)) < least_effect) break;
    if (paths.size() == most_values) break;
    if (known.insert(a.path).second) paths.push_back(a.path);
  }
  // What the first does not use may be what another one lives by.
  for (Scenario& s : scenarios)
    for (const UncertainValue& u : collect_uncertain(s))
      if (u.path.starts_with("stack ") && u.low < u.high && known.insert(u.path).second)
        paths.push_back(u.path);
  return paths;
}

// Scores of one contender: as things are, then at the low and the high end of each path.
struct Scores {
  double base = 0;
  std::vector<double> low, high;
  std::vector<Assumption> described;  // empty path: the contender does not have the value
};

double score_of(const Scenario& s, Objective objective, LoadedTransfers* loaded) {
  StepContext context = step_context(s.cluster);
  context.loaded = loaded;
  const StepResult result = step(context, s.model, s.job, s.layout, s.stack);
  if (objective != Objective::energy) return to_seconds(result.step).si();
  return (result.energy_per_gpu + host_power_per_accelerator(s.cluster) * to_seconds(result.step))
      .si();
}

Scores scores(Scenario& s, const std::vector<std::string>& paths, Objective objective) {
  LoadedTransfers loaded;
  Scores out{.base = score_of(s, objective, &loaded)};
  out.low.assign(paths.size(), out.base);
  out.high = out.low;
  out.described.resize(paths.size());
  const std::vector<UncertainValue> values = collect_uncertain(s);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto u = std::find_if(values.begin(), values.end(),
                                [&](const UncertainValue& v) { return v.path == paths[i]; });
    if (u == values.end()) continue;
    out.described[i] = u->described();
    LoadedTransfers* kept = u->path.starts_with("fabric") ? nullptr : &loaded;
    for (const bool high : {false, true}) {
      const double end = high ? u->high : u->low;
      if (end == u->value) continue;
      u->set(end);
      (high ? out.high : out.low)[i] = score_of(s, objective, kept);
    }
    u->set(u->value);
  }
  return out;
}

Rival rival(const Scores& first, const Scores& other) {
  Rival r{.behind = other.base / first.base - 1};
  std::vector<Assumption> effects;
  for (std::size_t i = 0; i < first.low.size(); ++i)
    effects.push_back({.effect_low = other.low[i] / first.low[i] / (1 + r.behind) - 1,
                       .effect_high = other.high[i] / first.high[i] / (1 + r.behind) - 1});
  const LogRange range = join_effects(effects);
  r.low = (1 + r.behind) * std::exp(-range.below) - 1;
  r.high = (1 + r.behind) * std::exp(range.above) - 1;
  return r;
}

// The contender that is first at one end of a value, where that is not the first.
void find_change(const std::vector<Scores>& all, std::size_t value, bool high,
                 std::vector<OrderChange>& changes) {
  const auto at = [&](std::size_t c) { return (high ? all[c].high : all[c].low)[value]; };
  std::size_t first = 0;
  for (std::size_t c = 1; c < all.size(); ++c)
    if (at(c) < at(first)) first = c;
  if (first == 0) return;
  const Assumption* named = nullptr;
  for (const Scores& s : all)
    if (named == nullptr && !s.described[value].path.empty()) named = &s.described[value];
  changes.push_back({.path = named->path,
                     .value = named->value,
                     .end = high ? named->high : named->low,
                     .first = first,
                     .ahead = at(0) / at(first) - 1});
}

}  // namespace

Ranking rank_contenders(const Scenario& ground, const Prediction& prediction,
                        const std::vector<Contender>& contenders, Objective objective) {
  std::vector<Scenario> scenarios;
  for (const Contender& c : contenders) {
    scenarios.push_back({.cluster = ground.cluster,
                         .model = ground.model,
                         .job = ground.job,
                         .layout = c.layout,
                         .stack = c.stack});
    widen_extrapolated(scenarios.back().cluster.calibration, prediction.extrapolations);
  }
  const std::vector<std::string> paths = paths_to_move(prediction.assumptions, scenarios);
  std::vector<Scores> all(scenarios.size());
  parallel_for(scenarios.size(), 0,
               [&](std::size_t i) { all[i] = scores(scenarios[i], paths, objective); });
  Ranking ranking;
  ranking.values = paths.size();
  for (std::size_t c = 1; c < all.size(); ++c) ranking.rivals.push_back(rival(all[0], all[c]));
  for (std::size_t value = 0; value < paths.size(); ++value)
    for (const bool high : {false, true}) find_change(all, value, high, ranking.changes);
  sort_stably(ranking.changes,
              [](const OrderChange& a, const OrderChange& b) { return a.ahead > b.ahead; });
  return ranking;
}

}  // namespace orrery
