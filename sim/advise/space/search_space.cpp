// SPDX-License-Identifier: Apache-2.0
// Makes families of layouts out of the lists of their dimensions, and layouts out of families.
#include "sim/advise/space/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "sim/advise/space/search_options.h"
#include "sim/engine/placement.h"

namespace orrery {

std::int64_t Family::leaves_below(const MicroBatchOption& micro_batch,
                                  const ShardOption& shard) const {
  return std::int64_t{choices(micro_batch.pipelines)} * choices(shard.zero_stages) *
         choices(shard.ranks) * choices(shard.buckets) * choices(offloads);
}

std::int64_t Family::leaves() const {
  std::int64_t sum = 0;
  for (const MicroBatchOption& m : micro_batches)
    for (const ShardOption& s : shards) sum += leaves_below(m, s);
  return sum * choices(exchanges) * choices(recomputes) * choices(sequence_parallel);
}

Layout Family::layout(const GridPoint& p) const {
  Layout l = base;
  const MicroBatchOption& micro = choice(micro_batches, p.micro_batch);
  const PipelineOption& pipeline = choice(micro.pipelines, p.pipeline);
  const ExchangeOption& exchange = choice(exchanges, p.exchange);
  const RecomputeOption& again = choice(recomputes, p.recompute);
  const ShardOption& shard = choice(shards, p.shard);
  const RankOption& rank = choice(shard.ranks, p.rank);
  l.micro_batch = micro.size;
  l.schedule = pipeline.schedule;
  l.vpp = pipeline.vpp;
  l.stage_layers = pipeline.stage_layers;
  l.sequence_parallel = sequence_parallel[static_cast<std::size_t>(p.sequence_parallel)];
  l.context = exchange.kind;
  l.context_inner = exchange.inner;
  l.set(again.choice);
  l.recompute_layers = again.layers;
  l.zero_stage = choice(shard.zero_stages, p.zero);
  l.shard_group = shard.group;
  l.bucket = choice(shard.buckets, p.bucket);
  l.rank_order = rank.order;
  l.per_domain = rank.per_domain;
  l.set(choice(offloads, p.offload));
  return l;
}

SearchSpace::SearchSpace(const SearchSubject& subject, const SearchLimits& limits)
    : subject_(subject), limits_(limits) {
  add_sizes();
  drop_unsharded();
}

// Who asks for ZeRO-3 wants shards: families of one data-parallel rank have none.
void SearchSpace::drop_unsharded() {
  const auto whole = [](const Family& f) { return f.base.dense_replicas() == 1; };
  if (limits_.zero_stage != 3 || std::all_of(families_.begin(), families_.end(), whole)) return;
  const auto dropped = std::erase_if(families_, whole);
  if (dropped == 0) return;
  reject("one data-parallel rank: ZeRO-3 has nothing to shard");
  invalid_ += static_cast<std::int64_t>(dropped) - 1;
}

std::int64_t SearchSpace::leaves() const {
  std::int64_t sum = 0;
  for (const Family& f : families_) sum += f.leaves();
  return sum;
}

void SearchSpace::reject(std::string reason) {
  if (invalid_++ == 0) invalid_example_ = std::move(reason);
}

std::optional<std::string> SearchSpace::wrong(const Layout& layout) const {
  return invalid_reason(layout, subject_.model, subject_.job, subject_.gpus,
                        subject_.stack.sharding.partition);
}

void SearchSpace::add_sizes() {
  const std::int64_t gpus = subject_.gpus;
  std::string unmet_dp;
  for (const std::int64_t tp : tensor_sizes(subject_, limits_))
    for (const std::int64_t cp : context_sizes(subject_, limits_)) {
      const bool divides = tp > 0 && cp > 0 && gpus % (tp * cp) == 0;
      if (!divides) {
        // What was not asked for is not a point of the grid, and no reason to name.
        const bool tensor = limits_.tp && (tp <= 0 || gpus % tp != 0);
        const bool context = limits_.cp && (cp <= 0 || gpus % cp != 0);
        if (tensor)
          reject(fmt::format("tp {} does not divide {} GPUs", tp, gpus));
        else if (context)
          reject(fmt::format("cp {} does not divide {} GPUs", cp, gpus));
        else if (limits_.tp && limits_.cp)
          reject(fmt::format("tp {} x cp {} does not divide {} GPUs", tp, cp, gpus));
        continue;
      }
      for (const std::int64_t pp : pipeline_sizes(subject_, limits_, gpus / (tp * cp))) {
        if (pp <= 0 || gpus % (tp * cp * pp) != 0) {
          reject(fmt::format("tp {} x cp {} x pp {} does not divide {} GPUs", tp, cp, pp, gpus));
          continue;
        }
        Layout outer;
        outer.tp = tp;
        outer.cp = cp;
        outer.pp = pp;
        outer.dp = gpus / (tp * cp * pp);
        outer.precision = subject_.precision;
        outer.optimizer = subject_.optimizer;
        outer.sequence_parallel = false;
        if (!limits_.dp || *limits_.dp == outer.dp)
          add_experts(outer);
        else if (unmet_dp.empty())
          unmet_dp = fmt::format("dp {} is not what tp {} x cp {} x pp {} leave of {} GPUs: {}",
                                 *limits_.dp, tp, cp, pp, gpus, outer.dp);
      }
    }
  if (families_.empty() && invalid_ == 0 && !unmet_dp.empty()) reject(unmet_dp);
}

void SearchSpace::add_experts(const Layout& outer) {
  const std::int64_t ranks = outer.dp * outer.cp * outer.tp;
  std::vector<std::int64_t> tensor = {1};
  if (subject_.model.has_experts() && outer.tp > 1) tensor.push_back(outer.tp);
  if (limits_.etp) tensor = {*limits_.etp};
  for (const std::int64_t etp : tensor)
    for (const std::int64_t ep : expert_sizes(subject_, limits_)) {
      if (!limits_.ep && !limits_.etp && ranks % (ep * etp) != 0) continue;
      Layout base = outer;
      base.ep = ep;
      base.etp = etp;
      if (limits_.etp || offers_expert_tensor(subject_, base)) add_family(base);
    }
}

// Dimensions do not rule each other out beyond the lists that hold several of them, so that one
// layout for each choice shows which are valid.
void SearchSpace::add_family(const Layout& base) {
  Family f{.base = base};
  std::string reason;
  for (const std::int64_t size : micro_batch_options(subject_, limits_, base)) {
    MicroBatchOption micro{.size = size};
    Layout l = base;
    l.micro_batch = size;
    for (PipelineOption& pipeline : pipeline_options(subject_, limits_, base)) {
      l.schedule = pipeline.schedule;
      l.vpp = pipeline.vpp;
      l.stage_layers = pipeline.stage_layers;
      const auto why = wrong(l);
      if (!why)
        micro.pipelines.push_back(std::move(pipeline));
      else if (reason.empty())
        reason = *why;
    }
    if (!micro.pipelines.empty()) f.micro_batches.push_back(std::move(micro));
  }
  if (f.micro_batches.empty()) {
    reject(reason.empty() ? "no schedule is left for these stages" : std::move(reason));
    return;
  }
  reason.clear();
  Layout probe = base;
  probe.micro_batch = f.micro_batches.front().size;
  const PipelineOption& first = f.micro_batches.front().pipelines.front();
  probe.schedule = first.schedule;
  probe.vpp = first.vpp;
  probe.stage_layers = first.stage_layers;
  const auto keep = [&](auto& list, auto&& options, auto&& set) {
    std::optional<std::string> example;
    for (auto& option : options) {
      Layout l = probe;
      set(l, option);
      auto why = wrong(l);
      if (!why)
        list.push_back(option);
      else if (!example)
        example = std::move(why);
    }
    if (list.empty() && reason.empty()) reason = example.value_or("");
  };
  for (const bool on : row_options(subject_, limits_, base)) {
    Layout l = probe;
    l.sequence_parallel = on;
    if (!wrong(l)) f.sequence_parallel.push_back(on);
  }
  keep(f.exchanges, exchange_options(subject_, limits_, base),
       [](Layout& l, const ExchangeOption& o) {
         l.context = o.kind;
         l.context_inner = o.inner;
       });
  keep(f.recomputes, recompute_options(subject_, limits_, base),
       [](Layout& l, const RecomputeOption& o) {
         l.set(o.choice);
         l.recompute_layers = o.layers;
       });
  keep(f.shards, shard_options(subject_, limits_, base), [](Layout& l, const ShardOption& o) {
    l.zero_stage = o.zero_stages.front();
    l.shard_group = o.group;
    l.bucket = o.buckets.front();
  });
  f.offloads = offload_options(subject_, limits_);
  if (reason.empty()) reason = unmet_reason(f);
  if (!add_offloads(std::move(f))) reject(std::move(reason));
}

// Of a family whose settings are valid one by one, where a limit leaves a list empty.
std::string SearchSpace::unmet_reason(const Family& f) const {
  const Layout& l = f.base;
  if (f.exchanges.empty() && l.cp == 1 && limits_.context_inner)
    return fmt::format("context_inner {} needs cp above 1", *limits_.context_inner);
  const std::int64_t group = limits_.shard_group.value_or(0), replicas = l.dense_replicas();
  if (f.shards.empty() && limits_.per_domain) {
    Layout placed = l;
    placed.per_domain = *limits_.per_domain;
    if (auto why = unplaceable_reason(placed, subject_.fabric)) return *why;
  }
  if (f.shards.empty() && group > 0 && replicas % group != 0)
    return fmt::format("shard_group {} does not divide dp {} x cp {}", group, l.dp, l.cp);
  if (f.shards.empty() && group > 0)
    return fmt::format(
        "shard_group {} needs a ZeRO stage of 1 to 3, and {} has none to choose here", group,
        subject_.stack.name);
  return fmt::format("tp {} x cp {} x pp {} x ep {} leaves no valid setting", l.tp, l.cp, l.pp,
                     l.ep);
}

// Where the program moves activations to host memory only without pipelines and recompute, these
// layouts are a family of their own.
bool SearchSpace::add_offloads(Family f) {
  const auto moves = [](const Offload& o) { return o.activations; };
  const bool alone = subject_.stack.choices.offload_activations_alone && !limits_.offload &&
                     std::any_of(f.offloads.begin(), f.offloads.end(), moves);
  if (!alone) return add_other_offloads(std::move(f));
  Family moved = f;
  std::erase_if(f.offloads, moves);
  std::erase_if(moved.offloads, std::not_fn(moves));
  std::erase_if(moved.recomputes, [](const RecomputeOption& again) {
    return again.choice.recompute != Recompute::none;
  });
  const bool stays = add_other_offloads(std::move(f));
  return (moved.base.pp == 1 && add_other_offloads(std::move(moved))) || stays;
}

// Where the program moves sharded weights only to host memory, a family's layouts below ZeRO-3,
// which keep theirs, are a family of their own; so are those of ZeRO-0, where it moves Adam's
// states out of a distributed optimizer only. False where nothing is left.
bool SearchSpace::add_other_offloads(Family f) {
  const auto moves = [](const Offload& o) { return o.weights; };
  const auto shards = [](const ShardOption& o) { return o.zero_stages.front() == 3; };
  const bool any = std::any_of(f.offloads.begin(), f.offloads.end(), moves) &&
                   !std::all_of(f.shards.begin(), f.shards.end(), shards);
  bool added = false;
  const auto add = [&](Family family) {
    if (family.leaves() == 0) return;
    families_.push_back(std::move(family));
    added = true;
  };
  if (!subject_.stack.choices.offload_any_optimizer && !limits_.offload &&
      std::any_of(f.offloads.begin(), f.offloads.end(),
                  [](const Offload& o) { return o.optimizer; })) {
    Family whole = f;
    for (ShardOption& shard : whole.shards)
      std::erase_if(shard.zero_stages, [](int zero) { return zero > 0; });
    std::erase_if(whole.offloads, [](const Offload& o) { return o.optimizer; });
    for (ShardOption& shard : f.shards) std::erase(shard.zero_stages, 0);
    for (Family* part : {&whole, &f})
      std::erase_if(part->shards, [](const ShardOption& s) { return s.zero_stages.empty(); });
    add(std::move(whole));
  }
  if (subject_.stack.choices.offload_whole_weights || !any) {
    add(std::move(f));
    return added;
  }
  Family below = f;
  std::erase_if(below.shards, shards);
  std::erase_if(below.offloads, moves);
  std::erase_if(f.shards, std::not_fn(shards));
  add(std::move(below));
  add(std::move(f));
  return added;
}

bool advance(const Family& f, GridPoint& p) {
  const MicroBatchOption& micro = choice(f.micro_batches, p.micro_batch);
  const ShardOption& shard = choice(f.shards, p.shard);
  struct Wheel {
    std::int32_t& at;
    std::size_t size;
  };
  const std::array<Wheel, 10> innermost_first = {{{p.bucket, shard.buckets.size()},
                                                  {p.zero, shard.zero_stages.size()},
                                                  {p.offload, f.offloads.size()},
                                                  {p.pipeline, micro.pipelines.size()},
                                                  {p.rank, shard.ranks.size()},
                                                  {p.shard, f.shards.size()},
                                                  {p.recompute, f.recomputes.size()},
                                                  {p.exchange, f.exchanges.size()},
                                                  {p.sequence_parallel, f.sequence_parallel.size()},
                                                  {p.micro_batch, f.micro_batches.size()}}};
  for (const Wheel& wheel : innermost_first) {
    if (static_cast<std::size_t>(++wheel.at) < wheel.size) return true;
    wheel.at = 0;
  }
  return false;
}

}  // namespace orrery
