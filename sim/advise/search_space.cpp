// Makes families of layouts out of the lists of their dimensions, and layouts out of families.
#include "sim/advise/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "sim/advise/search_options.h"
#include "sim/engine/placement.h"

namespace orrery {

Offload offload_of(const Layout& l) {
  return {.weights = l.offload_weights,
          .optimizer = l.offload_optimizer,
          .activations = l.offload_activations};
}

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
  const Offload& away = choice(offloads, p.offload);
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
  l.offload_weights = away.weights;
  l.offload_optimizer = away.optimizer;
  l.offload_activations = away.activations;
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

bool SearchSpace::valid(const Layout& layout) const {
  return !invalid_reason(layout, subject_.model, subject_.job, subject_.gpus,
                         subject_.stack.partition);
}

void SearchSpace::add_sizes() {
  const std::int64_t gpus = subject_.gpus;
  for (const std::int64_t tp : tensor_sizes(subject_, limits_))
    for (const std::int64_t cp : context_sizes(subject_, limits_)) {
      const bool divides = tp > 0 && cp > 0 && gpus % (tp * cp) == 0;
      if (!divides && !limits_.tp && !limits_.cp) continue;  // not a point of the grid
      if (!divides) {
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
        if (!limits_.dp || *limits_.dp == outer.dp) add_experts(outer);
      }
    }
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
      add_family(base);
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
      const auto wrong =
          invalid_reason(l, subject_.model, subject_.job, subject_.gpus, subject_.stack.partition);
      if (!wrong)
        micro.pipelines.push_back(std::move(pipeline));
      else if (reason.empty())
        reason = *wrong;
    }
    if (!micro.pipelines.empty()) f.micro_batches.push_back(std::move(micro));
  }
  if (f.micro_batches.empty()) {
    reject(reason.empty() ? "no schedule is left for these stages" : std::move(reason));
    return;
  }
  Layout probe = base;
  probe.micro_batch = f.micro_batches.front().size;
  const PipelineOption& first = f.micro_batches.front().pipelines.front();
  probe.schedule = first.schedule;
  probe.vpp = first.vpp;
  probe.stage_layers = first.stage_layers;
  const auto keep = [&](auto& list, auto&& options, auto&& set) {
    for (auto& option : options) {
      Layout l = probe;
      set(l, option);
      if (valid(l)) list.push_back(option);
    }
  };
  std::vector<bool> rows = {false};
  if (base.tp > 1) rows = {true, false};
  if (limits_.sequence_parallel) rows = {base.tp > 1 && *limits_.sequence_parallel};
  for (const bool on : rows) {
    Layout l = probe;
    l.sequence_parallel = on;
    if (valid(l)) f.sequence_parallel.push_back(on);
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
  if (!add_offloads(std::move(f)))
    reject(fmt::format("tp {} x cp {} x pp {} x ep {} leaves no valid setting", base.tp, base.cp,
                       base.pp, base.ep));
}

// Where the program moves sharded weights only to host memory, a family's layouts below ZeRO-3,
// which keep theirs, are a family of their own. False where nothing is left.
bool SearchSpace::add_offloads(Family f) {
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
