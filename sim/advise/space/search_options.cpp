// SPDX-License-Identifier: Apache-2.0
// Lists the choices of each dimension of the grid.
#include "sim/advise/space/search_options.h"

#include <algorithm>
#include <array>
#include <functional>

#include "sim/engine/placement.h"

namespace orrery {
namespace {

bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

// Layers a position where the first and the last hold fewer than all others. Where no such choice
// comes out even, what is left over goes to inner positions, one layer each, spread as far apart as
// they go: the ends, which hold embedding and head too, stay the thinnest.
std::vector<std::vector<std::int64_t>> uneven_stages(std::int64_t layers, std::int64_t positions,
                                                     bool even_differs) {
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t first = 0; first <= most_layers_less; ++first)
    for (std::int64_t last = 0; last <= most_layers_less; ++last) {
      if ((layers + first + last) % positions != 0) continue;
      if (first + last == 0 && !even_differs) continue;
      const std::int64_t each = (layers + first + last) / positions;
      if (each < 1 || first >= each || last >= each) continue;
      std::vector<std::int64_t> stages(static_cast<std::size_t>(positions), each);
      stages.front() -= first;
      stages.back() -= last;
      all.push_back(std::move(stages));
    }
  const std::int64_t inner = positions - 2, least = layers / positions, over = layers % positions;
  if (!all.empty() || least < 1 || over == 0 || over > inner) return all;
  std::vector<std::int64_t> stages(static_cast<std::size_t>(positions), least);
  for (std::int64_t i = 0; i < over; ++i)
    ++stages[static_cast<std::size_t>(1 + (2 * i + 1) * inner / (2 * over))];
  all.push_back(std::move(stages));
  return all;
}

// A module that runs again as part of another needs no name of its own.
bool has_redundant(RecomputeModules m) {
  return m.has(RecomputeModule::moe) &&
         (m.has(RecomputeModule::moe_act) || m.has(RecomputeModule::shared_experts));
}

bool splits(const SearchSubject& s, Split way) {
  return StackChoices::allows(s.stack.choices.splits, way);
}

// Whether every position has as many layers, as stacks of state-space models want it.
bool only_even(const SearchSubject& s) {
  return !s.stack.choices.hybrid_chunks && s.model.has_scans();
}

// Whether the program has settings for these layers a position: without a list of its own it has
// two numbers, of the first stage and of the last.
bool can_say(const StackChoices& c, const std::vector<std::int64_t>& stages, std::int64_t vpp) {
  if (c.uneven_chunks || stages.empty()) return true;
  const bool alike =
      stages.size() < 3 || std::adjacent_find(stages.begin() + 1, stages.end() - 1,
                                              std::not_equal_to<>()) == stages.end() - 1;
  return vpp == 1 && alike;
}

std::vector<RecomputeModule> modules_of(const Model& model, const Stack& stack) {
  const StackChoices& choices = stack.choices;
  bool dense = false, latent = false, shared = false, attention = false, norms = false;
  for (const LayerClass& layer : model.classes) {
    const NormModules own = norm_modules(stack, {}, layer);
    norms = norms || own.mixer || own.ffn;
    dense = dense || layer.ffn.kind == FfnKind::dense;
    shared = shared || (layer.ffn.kind == FfnKind::moe && layer.ffn.shared_width > 0);
    latent = latent || layer.mixer.kind == MixerKind::mla;
    attention = attention || layer.mixer.kind != MixerKind::none;
  }
  const bool experts = model.has_experts();
  std::vector<RecomputeModule> modules;
  const auto add = [&](RecomputeModule m, bool there) {
    if (there && StackChoices::allows(choices.recompute_modules, m)) modules.push_back(m);
  };
  add(RecomputeModule::core_attn, attention);
  add(RecomputeModule::layernorm, norms);
  add(RecomputeModule::mla_up_proj, latent);
  add(RecomputeModule::moe_act, experts);
  add(RecomputeModule::shared_experts, shared);
  add(RecomputeModule::mlp, dense);
  add(RecomputeModule::moe, experts);
  return modules;
}

std::vector<RankOption> rank_options(const SearchSubject& s, const SearchLimits& limits,
                                     const Layout& base) {
  using enum Parallel;
  const std::array<std::array<Parallel, 4>, 6> orders = {{{tp, cp, dp, pp},
                                                          {tp, cp, pp, dp},
                                                          {tp, dp, cp, pp},
                                                          {tp, dp, pp, cp},
                                                          {tp, pp, cp, dp},
                                                          {tp, pp, dp, cp}}};
  const std::int64_t domain = s.fabric.scale_up.domain;
  std::vector<RankOption> all;
  std::vector<std::vector<Parallel>> seen;  // without axes of one rank
  const auto add = [&](RankOrder order) {
    std::vector<Parallel> real;
    for (const Parallel axis : order.axes())
      if (base.size(axis) > 1) real.push_back(axis);
    if (std::find(seen.begin(), seen.end(), real) != seen.end()) return;
    Layout layout = base;
    layout.rank_order = order;
    layout.per_domain = limits.per_domain.value_or(0);
    if (unplaceable_reason(layout, s.fabric)) return;
    seen.push_back(real);
    all.push_back({.order = order, .per_domain = layout.per_domain});
    if (!limits.per_domain && s.gpus > domain && place(layout, s.fabric).ranks_per_domain < domain)
      all.push_back({.order = order, .per_domain = domain});
  };
  if (limits.rank_order) {
    add(*limits.rank_order);
    return all;
  }
  for (const auto& axes : orders) {
    if (s.gpus <= domain && !all.empty()) break;
    const RankOrder order(axes);
    if (StackChoices::allows(s.stack.choices.rank_orders, order)) add(order);
  }
  return all;
}

}  // namespace

std::vector<std::int64_t> tensor_sizes(const SearchSubject& s, const SearchLimits& limits) {
  if (limits.tp) return {*limits.tp};
  if (!splits(s, Split::tp)) return {1};
  std::int64_t heads = 0;
  for (const LayerClass& layer : s.model.classes) heads = std::max(heads, layer.mixer.heads);
  std::vector<std::int64_t> sizes;
  const std::int64_t domain = std::max<std::int64_t>(1, s.fabric.scale_up.domain);
  for (std::int64_t tp = 1; tp <= std::min(domain, s.gpus); ++tp)
    if (s.gpus % tp == 0 && (is_power_of_two(tp) || (heads > 0 && heads % tp == 0)))
      sizes.push_back(tp);
  return sizes;
}

std::vector<std::int64_t> context_sizes(const SearchSubject& s, const SearchLimits& limits) {
  if (limits.cp) return {*limits.cp};
  if (!splits(s, Split::cp)) return {1};
  std::vector<std::int64_t> sizes;
  const std::int64_t least = std::max(least_tokens_per_rank, limits.least_context_tokens);
  for (const std::int64_t cp : divisors(s.gpus))
    if (cp == 1 || (s.job.sequence % (2 * cp) == 0 && s.job.sequence / cp >= least))
      sizes.push_back(cp);
  return sizes;
}

std::vector<std::int64_t> pipeline_sizes(const SearchSubject& s, const SearchLimits& limits,
                                         std::int64_t ranks) {
  if (limits.pp) return {*limits.pp};
  if (!splits(s, Split::pp)) return {1};
  std::vector<std::int64_t> sizes = divisors(ranks);
  const std::int64_t layers = s.model.layer_count();
  const bool even = only_even(s);
  std::erase_if(sizes, [&](std::int64_t pp) { return pp > layers || (even && layers % pp != 0); });
  return sizes;
}

std::vector<bool> row_options(const SearchSubject& s, const SearchLimits& limits,
                              const Layout& base) {
  if (limits.sequence_parallel) return {base.tp > 1 && *limits.sequence_parallel};
  if (base.tp == 1) return {false};
  const std::vector<bool>& offered = s.stack.choices.sequence_parallel;
  return offered.empty() ? std::vector<bool>{true, false} : offered;
}

bool offers_expert_tensor(const SearchSubject& s, const Layout& base) {
  if (base.tp == 1 || !s.model.has_experts()) return true;
  const bool split = base.etp > 1;
  if (!StackChoices::allows(s.stack.choices.split_experts, split)) return false;
  if (s.stack.sharding.shard_storage != ShardStorage::parts) return true;
  // TorchTitan: without expert ranks tensor ranks split experts; its DeepEP wants them whole.
  if (base.ep == 1) return split;
  return !split || s.stack.communication.expert_library != CollectiveLibrary::deepep;
}

std::vector<std::int64_t> expert_sizes(const SearchSubject& s, const SearchLimits& limits) {
  if (limits.ep) return {*limits.ep};
  const bool several = s.model.has_experts() && splits(s, Split::ep);
  return several ? divisors(s.model.max_experts()) : std::vector<std::int64_t>{1};
}

std::vector<std::int64_t> micro_batch_options(const SearchSubject& s, const SearchLimits& limits,
                                              const Layout& base) {
  if (limits.micro_batch) return {*limits.micro_batch};
  const std::int64_t each = std::max<std::int64_t>(1, s.job.global_batch / base.dp);
  std::vector<std::int64_t> sizes;
  const std::int64_t most = std::max(most_micro_batch, most_micro_batch_tokens / s.job.sequence);
  for (std::int64_t size = 1; size <= std::min(most, each); ++size)
    if (is_power_of_two(size) || each % size == 0) sizes.push_back(size);
  return sizes;
}

std::vector<PipelineOption> pipeline_options(const SearchSubject& s, const SearchLimits& limits,
                                             const Layout& base) {
  const std::int64_t pp = base.pp, layers = s.model.layer_count();
  const bool even = only_even(s);
  std::vector<PipelineOption> all;
  const auto add = [&](Schedule schedule, std::int64_t vpp, bool as_placed, bool uneven) {
    if (limits.vpp && *limits.vpp != vpp) return;
    if (limits.stage_layers) {
      all.push_back({.schedule = schedule, .vpp = vpp, .stage_layers = *limits.stage_layers});
      return;
    }
    if (as_placed) all.push_back({.schedule = schedule, .vpp = vpp, .stage_layers = {}});
    if (!uneven || !s.stack.choices.uneven_stages || even) return;
    for (auto& stages :
         uneven_stages(layers, pp * vpp, s.stack.sharding.partition != Partition::even))
      if (can_say(s.stack.choices, stages, vpp))
        all.push_back({.schedule = schedule, .vpp = vpp, .stage_layers = std::move(stages)});
  };
  const std::optional<Schedule>& fixed = limits.schedule;
  if (pp == 1) {
    const Schedule one = fixed.value_or(Schedule::one_f_one_b);
    // With one stage the plain schedules are one and the same; the others need a pipeline.
    if (traits(one).chunks == StageChunks::one) add(one, 1, true, false);
    return all;
  }
  const std::int64_t fullest = (layers + pp - 1) / pp;
  const auto wanted = [&](Schedule schedule) {
    const ScheduleTraits& t = traits(schedule);
    if (fixed ? *fixed != schedule : t.dominated || !s.stack.has(schedule)) return false;
    if (t.pairs_directions && !fixed && !s.model.has_experts()) return false;
    if (t.chunks == StageChunks::loops) return fixed || !even || limits.vpp;
    return t.chunks != StageChunks::v || fullest > 1;
  };
  for (const Schedule schedule : all_schedules()) {
    const ScheduleTraits& t = traits(schedule);
    if (t.chunks == StageChunks::loops || !wanted(schedule)) continue;
    const bool plain = t.chunks == StageChunks::one;
    add(schedule, t.chunks == StageChunks::v ? 2 : 1, true, plain && !t.dominated);
  }
  for (const Schedule schedule : all_schedules()) {
    if (!loops_over_chunks(schedule) || !wanted(schedule)) continue;
    if (limits.vpp) {
      if (*limits.vpp > 1) add(schedule, *limits.vpp, true, true);
      continue;
    }
    for (std::int64_t vpp = 2; vpp <= std::min(most_chunks, fullest); ++vpp)
      add(schedule, vpp, fullest % vpp == 0, true);
  }
  return all;
}

std::vector<ExchangeOption> exchange_options(const SearchSubject& s, const SearchLimits& limits,
                                             const Layout& base) {
  // Who fixes the ranks that trade rows for heads asks for several ranks, and for this exchange.
  const std::int64_t inner_ranks = limits.context_inner.value_or(0);
  std::vector<ExchangeOption> all;
  if (base.cp == 1) {
    if (inner_ranks == 0) all.push_back({});
    return all;
  }
  const auto wanted = [&](ContextKind kind) {
    if (limits.context) return *limits.context == kind;
    if (inner_ranks > 0) return kind == ContextKind::hierarchical;
    return StackChoices::allows(s.stack.choices.contexts, kind);
  };
  for (const ContextKind kind : {ContextKind::ring, ContextKind::all_gather,
                                 ContextKind::all_to_all, ContextKind::hierarchical}) {
    if (!wanted(kind)) continue;
    if (kind != ContextKind::hierarchical) {
      all.push_back({.kind = kind, .inner = inner_ranks});  // not valid with ranks of another kind
      continue;
    }
    std::int64_t inner =
        std::min(std::max<std::int64_t>(1, s.fabric.scale_up.domain / base.tp), base.cp);
    while (base.cp % inner != 0) --inner;
    if (limits.context_inner)
      all.push_back({.kind = kind, .inner = *limits.context_inner});
    else if (inner > 1 && inner < base.cp)
      all.push_back({.kind = kind, .inner = inner});
  }
  return all;
}

std::vector<RecomputeOption> recompute_options(const SearchSubject& s, const SearchLimits& limits,
                                               const Layout& base) {
  std::vector<RecomputeOption> all;
  const std::int64_t fullest = (s.model.layer_count() + base.pp - 1) / base.pp;
  const auto add_full = [&] {
    if (limits.recompute_layers) {
      all.push_back({{.recompute = Recompute::full}, *limits.recompute_layers});
      return;
    }
    all.push_back({{.recompute = Recompute::full}, 0});
    if (!s.stack.choices.recompute_part) return;
    for (std::int64_t layers = 1; layers < fullest; ++layers)
      all.push_back({{.recompute = Recompute::full}, layers});
  };
  // Layers are counted in full recompute only: who fixes them asks for it. Beside another choice
  // they make no valid layout.
  const std::int64_t fixed_layers = limits.recompute_layers.value_or(0);
  std::vector<RecomputeChoice> only = limits.recomputes;
  if (fixed_layers > 0) only = {{.recompute = Recompute::full}};
  if (limits.recompute) only = {*limits.recompute};
  for (const RecomputeChoice& one : only) {
    if (one.recompute == Recompute::full)
      add_full();
    else
      all.push_back({one, fixed_layers});
  }
  if (!only.empty()) return all;
  const auto offered = [&](Recompute kind) {
    return StackChoices::allows(s.stack.choices.recomputes, kind);
  };
  if (offered(Recompute::none)) all.push_back({{.recompute = Recompute::none}, 0});
  std::vector<RecomputeModule> modules;
  if (offered(Recompute::selective)) modules = modules_of(s.model, s.stack);
  for (std::size_t set = 1; set < std::size_t{1} << modules.size(); ++set) {
    RecomputeModules chosen;
    for (std::size_t i = 0; i < modules.size(); ++i)
      if ((set >> i & 1U) != 0) chosen.add(modules[i]);
    if (!has_redundant(chosen))
      all.push_back({{.recompute = Recompute::selective, .modules = chosen}, 0});
  }
  if (offered(Recompute::full)) add_full();
  return all;
}

namespace {

std::vector<Bytes> bucket_options(const SearchSubject& s, const SearchLimits& limits,
                                  std::int64_t replicas) {
  if (limits.bucket) return {*limits.bucket};
  std::vector<Bytes> buckets = {Bytes(0)};
  if (replicas > 1 && s.stack.choices.bucket_size)
    for (const double size : {12.5e6, 25e6, 50e6, 100e6, 200e6, 400e6, 800e6, 1.6e9})
      buckets.emplace_back(size);
  return buckets;
}

}  // namespace

std::vector<ShardOption> shard_options(const SearchSubject& s, const SearchLimits& limits,
                                       const Layout& base) {
  const std::int64_t replicas = base.dense_replicas();
  const StackChoices& choices = s.stack.choices;
  // Who fixes a group asks for sharding, in groups of that size.
  const std::int64_t fixed_group = limits.shard_group.value_or(0);
  if (fixed_group > 0 && replicas % fixed_group != 0) return {};
  // Programs that always run FSDP2 shard over context ranks too.
  const bool over_context = base.cp > 1 && s.stack.sharding.shard_storage == ShardStorage::parts &&
                            s.stack.defaults.zero_stage == 3;
  // Muon's update takes whole matrices of gradients, which programs that keep parameters in place
  // do not gather.
  const bool whole_gradients =
      s.optimizer == Optimizer::muon && s.stack.sharding.shard_storage == ShardStorage::in_place;
  const auto wanted = [&](int zero) {
    if (zero > 1 && whole_gradients && !limits.zero_stage) return false;
    if (base.pp > 1 && zero > choices.pipeline_zero_stage) return false;
    if (fixed_group > 0 && zero == 0) return false;
    if (zero == 0 && over_context && !limits.zero_stage) return false;
    return limits.zero_stage ? *limits.zero_stage == zero
                             : StackChoices::allows(choices.zero_stages, zero);
  };
  const std::vector<Bytes> buckets = bucket_options(s, limits, replicas);
  std::vector<ShardOption> all;
  const auto add = [&](std::vector<int> stages, std::int64_t group, bool by_bucket) {
    if (stages.empty()) return;
    Layout layout = base;
    layout.zero_stage = stages.front();
    layout.shard_group = group;
    ShardOption option{.zero_stages = std::move(stages),
                       .group = group,
                       .ranks = rank_options(s, limits, layout),
                       .buckets = by_bucket ? buckets : std::vector<Bytes>{buckets.front()}};
    if (!option.ranks.empty()) all.push_back(std::move(option));
  };
  std::vector<int> whole;
  for (const int zero : {0, 1, 2})
    if (wanted(zero)) whole.push_back(zero);
  if (replicas == 1 && !limits.zero_stage && fixed_group == 0) {
    // Nothing to shard: every stage is the same.
    const int usual = s.stack.defaults.zero_stage;
    const bool there = std::find(whole.begin(), whole.end(), usual) != whole.end();
    whole = {there ? usual : whole.empty() ? 0 : whole.front()};
  }
  // ZeRO-2 has passes of its own where graphs do not hold sharded gradients.
  const auto launch_of = [&](int zero) {
    Layout layout = base;
    layout.zero_stage = zero;
    return launch_mode(s.stack, layout);
  };
  const bool apart = whole.size() > 1 && whole.back() == 2 && launch_of(2) != launch_of(0);
  if (apart) whole.pop_back();
  add(whole, fixed_group, true);
  if (apart) add({2}, fixed_group, true);
  const bool with_pipelines = s.stack.defaults.zero_stage == 3;
  if (!wanted(3)) return all;
  if (!limits.zero_stage && (replicas == 1 || (base.pp > 1 && !with_pipelines))) return all;
  add({3}, fixed_group, false);
  if (limits.shard_group) return all;
  // The largest group of data-parallel ranks that lies in one scale-up domain. Where a program's
  // shards are an axis of their own, a group holds whole groups of context ranks.
  const bool whole_contexts = base.cp > 1 && s.stack.defaults.zero_stage == 3;
  std::int64_t group = std::max<std::int64_t>(1, s.fabric.scale_up.domain / base.tp);
  const auto splits_replicas = [&] {
    return replicas % group == 0 && !(whole_contexts && group % base.cp != 0);
  };
  while (group > 0 && !splits_replicas()) --group;
  if (group > 1 && group < replicas) add({3}, group, false);
  return all;
}

std::vector<Offload> offload_options(const SearchSubject& s, const SearchLimits& limits) {
  if (limits.offload) return {*limits.offload};
  const StackChoices& c = s.stack.choices;
  const bool adam = c.offload_any_optimizer || s.optimizer == Optimizer::adam_fp32 ||
                    s.optimizer == Optimizer::adam_bf16_moments ||
                    s.optimizer == Optimizer::adam_8bit;
  std::vector<Offload> all;
  for (const bool weights : {false, true})
    for (const bool activations : {false, true})
      for (const bool optimizer : {false, true}) {
        if ((weights && !(s.offload && c.offload_weights)) ||
            (activations && !(s.offload && c.offload_activations)) ||
            (optimizer && !(s.offload && s.offload_optimizer && c.offload_optimizer && adam)))
          continue;
        // FSDP2 updates a parameter where it lies (CPUOffloadPolicy): both move or none.
        if (s.stack.sharding.shard_storage == ShardStorage::parts && weights != optimizer) continue;
        const int least = optimizer && c.offload_part ? 1 : 8;
        for (int eighths = least; eighths <= 8; ++eighths)
          all.push_back({.weights = weights,
                         .optimizer = optimizer,
                         .activations = activations,
                         .fraction = eighths / 8.0});
      }
  return all;
}

}  // namespace orrery
