// SPDX-License-Identifier: Apache-2.0
// Knows what placement promises: its closed forms are what counting ranks gives.
#include "sim/engine/placement.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <set>
#include <vector>

namespace orrery {
namespace {

Fabric fabric_of(std::int64_t domain) {
  Fabric f;
  f.name = "test";
  f.scale_up.domain = domain;
  f.scale_up.bandwidth.value = bytes_per_second(450e9);
  f.scale_up.latency.value = microseconds(1);
  f.scale_out.kind = ScaleOutKind::fat_tree;
  f.scale_out.nics_per_accelerator.value = 1;
  f.scale_out.nic_bandwidth.value = bytes_per_second(50e9);
  f.scale_out.nic_latency.value = microseconds(3);
  f.scale_out.efficiency.value = 1;
  f.scale_out.tiers.emplace_back();
  f.scale_out.tiers.back().oversubscription.value = 1;
  f.scale_out.tiers.back().latency.value = microseconds(0);
  return f;
}

struct Sizes {
  std::int64_t tp = 1, pp = 1, dp = 1, ep = 1, shard_group = 0;
};
Layout layout(Sizes sizes) {
  Layout l;
  l.tp = sizes.tp;
  l.pp = sizes.pp;
  l.dp = sizes.dp;
  l.ep = sizes.ep;
  l.shard_group = sizes.shard_group;
  return l;
}

using Groups = std::vector<std::vector<std::int64_t>>;

// All groups of `size` ranks `stride` apart, counted out rank by rank: rank r is member
// (r / stride) mod size of its group.
Groups groups_of(std::int64_t job, std::int64_t size, std::int64_t stride) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> by_key;
  for (std::int64_t r = 0; r < job; ++r) by_key[{r / (stride * size), r % stride}].push_back(r);
  Groups all;
  for (auto& [key, ranks] : by_key) all.push_back(ranks);
  return all;
}

struct Counted {
  std::int64_t most_domains = 0, least_domains = 1 << 30;
  std::int64_t most_inside = 0, most_sharing = 0;
  std::set<std::int64_t> steps;  // between neighbouring domains of a group
};

Counted count(const Groups& groups, std::int64_t used) {
  Counted c;
  std::map<std::int64_t, std::set<std::size_t>> in_domain;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::map<std::int64_t, std::int64_t> ranks_in;
    for (const std::int64_t r : groups[g]) {
      ++ranks_in[r / used];
      in_domain[r / used].insert(g);
    }
    const auto domains = static_cast<std::int64_t>(ranks_in.size());
    c.most_domains = std::max(c.most_domains, domains);
    c.least_domains = std::min(c.least_domains, domains);
    for (const auto& [domain, ranks] : ranks_in) c.most_inside = std::max(c.most_inside, ranks);
    for (auto at = ranks_in.begin(); std::next(at) != ranks_in.end(); ++at)
      c.steps.insert(std::next(at)->first - at->first);
  }
  for (const auto& [domain, members] : in_domain)
    c.most_sharing = std::max(c.most_sharing, static_cast<std::int64_t>(members.size()));
  return c;
}

void check_group(const GroupShape& shape, std::int64_t job, std::int64_t stride,
                 std::int64_t used) {
  if (shape.size <= 1) return;
  const Counted c = count(groups_of(job, shape.size, stride), used);
  const std::int64_t block = shape.size * stride;
  const bool nested = job <= used || used % block == 0 ||
                      (block % used == 0 && (used % stride == 0 || stride % used == 0));
  if (nested) {
    RC_ASSERT(shape.domains == c.most_domains);
    RC_ASSERT(shape.domains == c.least_domains);
    RC_ASSERT(shape.per_domain == c.most_inside);
    RC_ASSERT(shape.per_domain * shape.domains == shape.size);
    RC_ASSERT(shape.sharing == c.most_sharing);
    const std::set<std::int64_t> step = {shape.domain_step};
    if (shape.domains > 1) RC_ASSERT(c.steps == step);
    if (shape.domains == 1) RC_ASSERT(shape.domain_step == 1);
  } else {
    // Never fewer domains than the worst group has, never more ranks together than there are.
    RC_ASSERT(shape.domains >= c.most_domains);
    RC_ASSERT(shape.per_domain <= c.most_inside);
    RC_ASSERT(shape.per_domain >= 1);
  }
}

TEST_CASE("group shapes are what counting ranks gives", "[placement]") {
  CHECK(rc::check([] {
    const auto power = [](int most) { return INT64_C(1) << *rc::gen::inRange(0, most); };
    Layout l;
    l.tp = power(5);
    l.pp = *rc::gen::inRange<std::int64_t>(1, 5);
    l.dp = power(4) * *rc::gen::element<std::int64_t>(1, 1, 3, 9);
    l.cp = power(3);
    const std::int64_t stage = l.tp * l.cp * l.dp;
    l.ep = power(6);
    RC_PRE(stage % l.ep == 0);
    const auto domain = *rc::gen::element<std::int64_t>(1, 4, 8, 16, 72, 6);
    const Placement p = place(l, fabric_of(domain));
    const std::int64_t used = p.ranks_per_domain;
    RC_ASSERT(used >= 1);
    RC_ASSERT(used <= std::max<std::int64_t>(domain, 1));
    const std::int64_t job = l.gpus();
    check_group(p.tensor, job, 1, used);
    check_group(p.context, job, l.tp, used);
    RC_ASSERT(p.context_heads.size * p.context_rings.size == p.context.size);
    check_group(p.context_heads, job, l.tp, used);
    check_group(p.context_rings, job, l.tp * l.context_heads(), used);
    check_group(p.data, job, l.tp * l.cp, used);
    check_group(p.data_context, job, l.tp, used);
    check_group(p.expert, job, l.etp, used);
    check_group(p.expert_data, job, l.ep * l.etp, used);
    RC_ASSERT(p.expert.size * p.expert_data.size == stage);
    RC_ASSERT(p.tensor.size == l.tp);
    RC_ASSERT(p.data_context.size == l.dp * l.cp);
  }));
}

// The axis coordinates of every rank, as the order counts them.
std::map<Parallel, std::int64_t> coordinates(const Layout& l, std::int64_t rank) {
  std::map<Parallel, std::int64_t> at;
  for (const Parallel axis : l.rank_order.axes()) {
    at[axis] = rank % l.size(axis);
    rank /= l.size(axis);
  }
  return at;
}

// Groups of ranks that agree on all that `key` tells of a rank.
template <class Key>
Groups groups_by(std::int64_t job, Key&& key) {
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> by_key;
  for (std::int64_t r = 0; r < job; ++r) by_key[key(r)].push_back(r);
  Groups all;
  for (auto& [k, ranks] : by_key) all.push_back(ranks);
  return all;
}

// A rank's number among the ranks of its stage, which expert groups fold over.
std::int64_t number_in_stage(const Layout& l, std::int64_t rank) {
  std::int64_t number = 0, stride = 1;
  const auto at = coordinates(l, rank);
  for (const Parallel axis : l.rank_order.axes()) {
    if (axis == Parallel::pp) continue;
    number += at.at(axis) * stride;
    stride *= l.size(axis);
  }
  return number;
}

void check_groups(const GroupShape& shape, const Groups& groups, std::int64_t used) {
  RC_ASSERT(shape.size == static_cast<std::int64_t>(groups.front().size()));
  if (shape.size <= 1) return;
  const Counted c = count(groups, used);
  RC_ASSERT(shape.domains == c.most_domains);
  RC_ASSERT(shape.per_domain == c.most_inside);
  RC_ASSERT(shape.sharing == c.most_sharing);
  std::int64_t reach = 0;
  for (const auto& ranks : groups) reach = std::max(reach, ranks.back() - ranks.front() + 1);
  RC_ASSERT(shape.span == reach);
}

TEST_CASE("in any rank order group shapes are what counting ranks gives", "[placement]") {
  CHECK(rc::check([] {
    const auto power = [](int most) { return INT64_C(1) << *rc::gen::inRange(0, most); };
    std::array<Parallel, 4> axes = {Parallel::tp, Parallel::cp, Parallel::dp, Parallel::pp};
    for (std::size_t i = 3; i > 0; --i)
      std::swap(axes[i], axes[*rc::gen::inRange<std::size_t>(0, i + 1)]);
    Layout l;
    l.rank_order = RankOrder(axes);
    l.tp = power(4);
    l.pp = power(4);
    l.dp = power(4);
    l.cp = power(3);
    l.ep = power(5);
    const std::int64_t stage = l.tp * l.cp * l.dp;
    RC_PRE(stage % l.ep == 0);
    const Fabric fabric = fabric_of(power(5));  // powers of two nest: shapes are exact
    RC_ASSERT(!unplaceable_reason(l, fabric));
    const Placement p = place(l, fabric);
    const std::int64_t job = l.gpus(), used = p.ranks_per_domain;
    const auto along = [&](std::initializer_list<Parallel> free) {
      return groups_by(job, [&, axes = std::vector<Parallel>(free)](std::int64_t r) {
        std::vector<std::int64_t> key;
        for (const auto& [axis, at] : coordinates(l, r))
          if (std::find(axes.begin(), axes.end(), axis) == axes.end()) key.push_back(at);
        return key;
      });
    };
    check_groups(p.tensor, along({Parallel::tp}), used);
    check_groups(p.context, along({Parallel::cp}), used);
    check_groups(p.data, along({Parallel::dp}), used);
    check_groups(p.data_context, along({Parallel::cp, Parallel::dp}), used);
    const auto of_stage = [&](std::int64_t step, std::int64_t size) {
      return groups_by(job, [&](std::int64_t r) {
        const std::int64_t n = number_in_stage(l, r);
        return std::vector<std::int64_t>{coordinates(l, r).at(Parallel::pp), n % step,
                                         n / (step * size)};
      });
    };
    check_groups(p.expert, of_stage(1, l.ep), used);
    check_groups(p.expert_data, of_stage(l.ep, stage / l.ep), used);
  }));
}

TEST_CASE("pipelines inside a rack, replicas across racks", "[placement]") {
  Layout l = layout({.tp = 8, .pp = 8, .dp = 16});
  const Fabric rack = fabric_of(72);
  CHECK(place(l, rack).pipeline.tier == 1);
  CHECK(place(l, rack).data.domains == 2);
  l.rank_order = RankOrder({Parallel::tp, Parallel::cp, Parallel::pp, Parallel::dp});
  const Placement inside = place(l, rack);
  CHECK(inside.ranks_per_domain == 64);
  CHECK(inside.pipeline.tier == 0);
  CHECK(inside.data.domains == 16);
  CHECK(inside.data.per_domain == 1);
  l.per_domain = 72;
  CHECK(place(l, rack).ranks_per_domain == 72);
  l.per_domain = 73;
  CHECK(unplaceable_reason(l, rack).value_or("").find("72") != std::string::npos);
}

TEST_CASE("well-known layouts lie as expected", "[placement]") {
  const Fabric dgx = fabric_of(8);
  const Placement p = place(layout({.tp = 8, .pp = 16, .dp = 8}), dgx);
  CHECK(p.tensor == GroupShape{.size = 8, .per_domain = 8, .domains = 1, .span = 8, .sharing = 1});
  CHECK(p.data.per_domain == 1);
  CHECK(p.data.domains == 8);
  CHECK(p.data.sharing == 8);
  CHECK(p.data.span == 57);
  CHECK(p.data.domain_step == 1);
  CHECK(p.embedding.domain_step == 15 * 8);
  CHECK(p.pipeline.tier == 1);

  // TP 16 over two boxes has all NICs of both for itself.
  const Placement wide = place(layout({.tp = 16, .dp = 4}), dgx);
  CHECK(wide.tensor.per_domain == 8);
  CHECK(wide.tensor.domains == 2);
  CHECK(wide.tensor.sharing == 1);

  // Plain data parallelism uses every NIC of a box together.
  const Placement flat = place(layout({.dp = 64}), dgx);
  CHECK(flat.data.per_domain == 8);
  CHECK(flat.data.domains == 8);
  CHECK(flat.data.sharing == 1);

  // Hybrid sharding: shards inside a box, replicas across.
  const Placement hybrid = place(layout({.dp = 64, .shard_group = 8}), dgx);
  CHECK(hybrid.shard.domains == 1);
  CHECK(hybrid.shard_replica.domains == 8);
  CHECK(hybrid.shard_replica.sharing == 8);
  CHECK(hybrid.shard_replica.domain_step == 1);
  const Placement apart = place(layout({.dp = 128, .shard_group = 32}), dgx);
  CHECK(apart.shard_replica.domain_step == 4);
}

TEST_CASE("a rack of 72 is used by 64 for powers of two and by 72 where that divides",
          "[placement]") {
  const Fabric rack = fabric_of(72);
  CHECK(place(layout({.tp = 8, .dp = 128}), rack).ranks_per_domain == 64);
  CHECK(place(layout({.dp = 64, .ep = 64}), rack).expert.domains == 1);
  CHECK(place(layout({.tp = 8, .dp = 72}), rack).ranks_per_domain == 72);
  CHECK(place(layout({.dp = 1440}), rack).ranks_per_domain == 72);
  const Placement p = place(layout({.dp = 512, .ep = 64}), rack);
  CHECK(p.ranks_per_domain == 64);
  CHECK(p.expert.domains == 1);
  CHECK(p.expert_data.domains == 8);
  // The span counts accelerators, idle ones included.
  CHECK(p.expert_data.span == 7 * 72 + 1);
}

}  // namespace
}  // namespace orrery
