// SPDX-License-Identifier: Apache-2.0
// Takes settings back one by one and runs what comes out.
#include "sim/advise/simplify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sim/base/parallel.h"
#include "sim/base/sorting.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/step/step.h"

namespace orrery {
namespace {

std::vector<Layout> simpler_offload(const Layout& l) {
  std::vector<Layout> all;
  const std::vector<std::string> parts = offloaded(l);
  if (parts.empty()) return all;
  Layout one = l;
  one.offload_nothing();
  all.push_back(one);
  if (parts.size() == 1) return all;
  for (bool Layout::*part :
       {&Layout::offload_weights, &Layout::offload_activations, &Layout::offload_optimizer}) {
    if (!(l.*part)) continue;
    one = l;
    one.*part = false;
    if (!one.offload_optimizer) one.optimizer_offload_fraction = 1;
    all.push_back(one);
  }
  return all;
}

std::vector<Layout> simpler_recompute(const Layout& l, const StackDefaults& defaults) {
  std::vector<Layout> all;
  if (l.recompute == Recompute::none) return all;
  Layout one = l;
  one.recompute_layers = 0;
  if (defaults.recompute_known && defaults.recompute.recompute != Recompute::none) {
    one.set(defaults.recompute);
    if (one == l) return all;
    all.push_back(one);
  }
  one.set({.recompute = Recompute::none});
  all.push_back(one);
  if (l.recompute != Recompute::selective) return all;
  std::vector<RecomputeModule> modules;
  for (int m = 0; m < recompute_module_count; ++m)
    if (l.recomputes(static_cast<RecomputeModule>(m)))
      modules.push_back(static_cast<RecomputeModule>(m));
  if (modules.size() < 2) return all;
  for (const RecomputeModule left_out : modules) {
    RecomputeModules fewer;
    for (const RecomputeModule m : modules)
      if (m != left_out) fewer.add(m);
    one.set({.recompute = Recompute::selective, .modules = fewer});
    all.push_back(one);
  }
  return all;
}

std::vector<Layout> simpler_shards(const Layout& l, const StackDefaults& defaults) {
  std::vector<Layout> all;
  Layout one = l;
  one.shard_group = 0;
  if (l.zero_stage != defaults.zero_stage) {
    one.zero_stage = defaults.zero_stage;
    all.push_back(one);
  }
  if (l.shard_group == 0) return all;
  one.zero_stage = l.zero_stage;
  all.push_back(one);
  return all;
}

template <class T>
std::optional<std::int32_t> index_of(const std::vector<T>& list, auto&& is) {
  const auto at = std::find_if(list.begin(), list.end(), is);
  if (at == list.end()) return std::nullopt;
  return static_cast<std::int32_t>(at - list.begin());
}

// The place of a layout in its family; nullopt when the grid does not have it.
std::optional<GridPoint> point_of(const Family& f, const Layout& l) {
  GridPoint p;
  const auto find = [](std::int32_t& at, const std::optional<std::int32_t>& index) {
    at = index.value_or(0);
    return index.has_value();
  };
  const bool found =
      find(p.micro_batch,
           index_of(f.micro_batches, [&](const auto& m) { return m.size == l.micro_batch; })) &&
      find(p.pipeline, index_of(choice(f.micro_batches, p.micro_batch).pipelines,
                                [&](const PipelineOption& o) {
                                  return o.schedule == l.schedule && o.vpp == l.vpp &&
                                         o.stage_layers == l.stage_layers;
                                })) &&
      find(p.sequence_parallel,
           index_of(f.sequence_parallel, [&](bool on) { return on == l.sequence_parallel; })) &&
      find(p.exchange, index_of(f.exchanges,
                                [&](const ExchangeOption& o) {
                                  return o.kind == l.context && o.inner == l.context_inner;
                                })) &&
      find(p.recompute, index_of(f.recomputes,
                                 [&](const RecomputeOption& o) {
                                   return o.choice == l.recompute_choice() &&
                                          o.layers == l.recompute_layers;
                                 })) &&
      find(p.shard, index_of(f.shards,
                             [&](const ShardOption& o) {
                               return o.group == l.shard_group &&
                                      std::find(o.zero_stages.begin(), o.zero_stages.end(),
                                                l.zero_stage) != o.zero_stages.end();
                             })) &&
      find(p.offload, index_of(f.offloads, [&](const Offload& o) { return o == offload_of(l); }));
  if (!found) return std::nullopt;
  const ShardOption& shard = choice(f.shards, p.shard);
  if (!find(p.zero, index_of(shard.zero_stages, [&](int z) { return z == l.zero_stage; })) ||
      !find(p.rank, index_of(shard.ranks,
                             [&](const RankOption& o) {
                               return o.order == l.rank_order && o.per_domain == l.per_domain;
                             })) ||
      !find(p.bucket, index_of(shard.buckets, [&](Bytes b) { return b == l.bucket; })))
    return std::nullopt;
  return p;
}

bool same_sizes(const Layout& a, const Layout& b) {
  return a.precision == b.precision && a.optimizer == b.optimizer && a.tp == b.tp && a.pp == b.pp &&
         a.dp == b.dp && a.cp == b.cp && a.ep == b.ep && a.etp == b.etp;
}

std::string stages_text(const Layout& l) {
  return fmt::format("{} layers on the first and {} on the last position", l.stage_layers.front(),
                     l.stage_layers.back());
}

std::string setting_text(const Layout& l, Knob knob) {
  switch (knob) {
    case Knob::bucket:
      return fmt::format("a bucket of {}", to_text(l.bucket));
    case Knob::offload:
      return fmt::format("{} in host memory", offload_text(l));
    case Knob::rank_order:
      return fmt::format("ranks in the order {}", to_text(l.rank_order));
    case Knob::per_domain:
      return fmt::format("{} accelerators of a scale-up domain", l.per_domain);
    case Knob::recompute:
      return l.recompute == Recompute::full && l.recompute_layers > 0
                 ? fmt::format("full recompute of {} layers a stage", l.recompute_layers)
                 : fmt::format("{} recompute", to_text(l.recompute_choice()));
    case Knob::context:
      return fmt::format("{} context exchange", to_text(l.context));
    case Knob::zero:
      return l.shard_group > 0 ? fmt::format("ZeRO-{} in groups of {}", l.zero_stage, l.shard_group)
                               : fmt::format("ZeRO-{}", l.zero_stage);
    case Knob::stages:
      return stages_text(l);
    case Knob::rows:
      return l.sequence_parallel ? "sequence parallelism" : "no sequence parallelism";
  }
  return {};
}

class Walk {
 public:
  Walk(const SearchGround& ground, const Found& exact, double tolerance)
      : ground_(ground),
        stack_(ground.recipe(exact.place).stack),
        most_(exact.score * (1 + tolerance)) {
    out_.exact = out_.shown = exact;
    factor_.fill(1);
  }
  Simplified run() {
    while (pass()) {
    }
    for (int k = 0; k < knob_count; ++k) {
      const auto knob = static_cast<Knob>(k);
      if (taken_back_[static_cast<std::size_t>(k)])
        out_.left.push_back({.knob = knob,
                             .setting = setting_text(out_.exact.candidate.layout, knob),
                             .gain = factor_[static_cast<std::size_t>(k)] - 1});
    }
    return std::move(out_);
  }

 private:
  // Whether anything was taken back. What a later setting frees, memory or time, an earlier one may
  // need.
  bool pass() {
    bool any = false;
    for (int k = 0; k < knob_count; ++k) {
      for (const Layout& layout :
           simpler(out_.shown.candidate.layout, static_cast<Knob>(k), stack_)) {
        const std::optional<Found> found = run(layout);
        if (!found || found->score > most_) continue;
        factor_[static_cast<std::size_t>(k)] *= found->score / out_.shown.score;
        taken_back_[static_cast<std::size_t>(k)] = any = true;
        out_.shown = *found;
        break;
      }
    }
    return any;
  }
  // Families of the same sizes are apart where the program moves other things to host memory.
  std::optional<Place> place_of(const Layout& layout) const {
    const std::int32_t recipe = out_.exact.place.recipe;
    const auto& families = ground_.spaces[static_cast<std::size_t>(recipe)].families();
    for (std::size_t f = 0; f < families.size(); ++f) {
      if (!same_sizes(families[f].base, layout)) continue;
      if (const std::optional<GridPoint> point = point_of(families[f], layout))
        return Place{recipe, static_cast<std::int32_t>(f), *point};
    }
    return std::nullopt;
  }
  std::optional<Found> run(const Layout& layout) const {
    const std::optional<Place> place = place_of(layout);
    if (!place || !memory_fits(ground_.model, ground_.job, layout, stack_, ground_.device))
      return std::nullopt;
    return found_of(ground_, *place, layout,
                    step(ground_.context, ground_.model, ground_.job, layout, stack_));
  }

  const SearchGround& ground_;
  const Stack& stack_;
  double most_ = 0;  // score
  Simplified out_;
  std::array<double, knob_count> factor_{};
  std::array<bool, knob_count> taken_back_{};
};

void put_simplest_first(const SearchGround& ground, std::vector<Simplified>& all,
                        double tolerance) {
  const auto settings = [&](const Simplified& s) {
    return special_settings(s.shown.candidate.layout, ground.recipe(s.shown.place).stack);
  };
  const auto ties = std::find_if(all.begin(), all.end(), [&](const Simplified& s) {
    return s.shown.score > (1 + tolerance) * all.front().shown.score;
  });
  const auto simplest = std::min_element(
      all.begin(), ties,
      [&](const Simplified& a, const Simplified& b) { return settings(a) < settings(b); });
  if (simplest != ties) std::rotate(all.begin(), simplest, simplest + 1);
}

}  // namespace

std::string_view to_text(Knob knob) {
  constexpr auto words = enum_names<Knob>(
      {"bucket size", "offload", "rank order", "accelerators of a domain", "recompute",
       "context exchange", "ZeRO stage", "uneven stages", "sequence parallelism"});
  return words[knob];
}

std::vector<Layout> simpler(const Layout& l, Knob knob, const Stack& stack) {
  const StackDefaults& defaults = stack.defaults;
  Layout one = l;
  switch (knob) {
    case Knob::bucket:
      one.bucket = Bytes(0);
      break;
    case Knob::offload:
      return simpler_offload(l);
    case Knob::rank_order:
      one.rank_order = RankOrder();
      break;
    case Knob::per_domain:
      one.per_domain = 0;
      break;
    case Knob::recompute:
      return simpler_recompute(l, defaults);
    case Knob::context:
      if (l.cp == 1) return {};
      one.context = defaults.context;
      if (one.context != l.context) one.context_inner = 0;
      break;
    case Knob::zero:
      return simpler_shards(l, defaults);
    case Knob::stages:
      one.stage_layers.clear();
      break;
    case Knob::rows:
      if (l.tp > 1) one.sequence_parallel = defaults.sequence_parallel;
      break;
  }
  if (one == l) return {};
  return {one};
}

Simplified simplify(const SearchGround& ground, const Found& exact, double tolerance) {
  return Walk(ground, exact, tolerance).run();
}

int special_settings(const Layout& layout, const Stack& stack) {
  int count = 0;
  for (int k = 0; k < knob_count; ++k)
    if (!simpler(layout, static_cast<Knob>(k), stack).empty()) ++count;
  return count;
}

std::vector<Simplified> simplify_all(const SearchGround& ground, const std::vector<Found>& best,
                                     double tolerance, int threads) {
  std::vector<Simplified> all(best.size());
  parallel_for(best.size(), threads,
               [&](std::size_t i) { all[i] = simplify(ground, best[i], tolerance); });
  sort_stably(
      all, [](const Simplified& a, const Simplified& b) { return a.shown.score < b.shown.score; });
  put_simplest_first(ground, all, tolerance);
  return all;
}

}  // namespace orrery
