// SPDX-License-Identifier: Apache-2.0
// Counts through the ranks of a layout's groups, as sim/engine/placement.cpp places them.
#include "sim/chakra/rank_groups.h"

#include <algorithm>
#include <initializer_list>

#include "workloads/parameters/weight_split.h"

namespace orrery {
namespace {

// All ranks that differ from this one along these axes only, in rank order; and which it is.
struct Line {
  std::vector<std::int64_t> ranks;
  std::int64_t own = 0;
};

Line line_of(const Layout& l, std::initializer_list<Parallel> axes, std::int64_t rank) {
  std::int64_t base = rank;
  Line line{.ranks = {0}};
  for (const Parallel axis : l.rank_order.axes()) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) continue;
    const std::int64_t stride = l.stride(axis), here = rank / stride % l.size(axis);
    base -= here * stride;
    line.own += here * static_cast<std::int64_t>(line.ranks.size());
    const std::vector<std::int64_t> inner = line.ranks;
    for (std::int64_t i = 1; i < l.size(axis); ++i)
      for (const std::int64_t r : inner) line.ranks.push_back(r + i * stride);
  }
  for (std::int64_t& r : line.ranks) r += base;
  return line;
}

// Every `step`-th rank of a line, `count` of them.
std::vector<std::int64_t> every(const Line& line, std::int64_t step, std::int64_t count) {
  const std::int64_t first = line.own / (step * count) * step * count + line.own % step;
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < count; ++i)
    ranks.push_back(line.ranks[static_cast<std::size_t>(first + i * step)]);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<std::int64_t> ends_of(const Layout& l, std::int64_t rank) {
  const std::int64_t stride = l.stride(Parallel::pp), stage = rank / stride % l.pp;
  if (l.pp == 1 || (stage != 0 && stage != l.pp - 1)) return {};
  const std::int64_t first = rank - stage * stride;
  return {first, first + (l.pp - 1) * stride};
}

}  // namespace

StepGroup step_group(GroupKind kind) { return static_cast<StepGroup>(kind); }
static_assert(static_cast<int>(GroupKind::expert_shard_replica) ==
              static_cast<int>(StepGroup::expert_shard_replica));

std::vector<std::int64_t> group_ranks(const Layout& l, StepGroup group, std::int64_t rank) {
  const ShardWays ways = shard_ways(l);
  const std::int64_t experts = l.ep * l.etp;
  const auto context = [&] { return line_of(l, {Parallel::cp}, rank); };
  const auto replica = [&] { return line_of(l, {Parallel::cp, Parallel::dp}, rank); };
  const auto stage = [&] { return line_of(l, {Parallel::tp, Parallel::cp, Parallel::dp}, rank); };
  switch (group) {
    case StepGroup::tensor:
      return every(line_of(l, {Parallel::tp}, rank), 1, l.tp);
    case StepGroup::context:
      return every(context(), 1, l.cp);
    case StepGroup::context_heads:
      return every(context(), 1, l.context_heads());
    case StepGroup::context_rings:
      return every(context(), l.context_heads(), l.context_rings());
    case StepGroup::expert:
      return every(stage(), l.etp, l.ep);
    case StepGroup::expert_tensor:
      return every(stage(), 1, l.etp);
    case StepGroup::expert_ranks:
      return every(stage(), 1, experts);
    case StepGroup::shard:
      return every(replica(), 1, ways.dense);
    case StepGroup::expert_shard:
      return every(stage(), experts, ways.expert);
    case StepGroup::shard_replica:
      return every(replica(), ways.dense, ways.dense_copies);
    case StepGroup::expert_shard_replica:
      return every(stage(), experts * ways.expert, ways.expert_copies);
    case StepGroup::replicas:
      return every(replica(), 1, l.cp * l.dp);
    case StepGroup::expert_replicas:
      return every(stage(), experts, ways.expert * ways.expert_copies);
    case StepGroup::ends:
      return ends_of(l, rank);
  }
  return {};
}

}  // namespace orrery
