// SPDX-License-Identifier: Apache-2.0
// Holds jobs on hosts anywhere in a cluster to their laws: one class of places has one price, a
// contiguous one today's, and no scatter gains by it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "sim/base/random.h"
#include "sim/engine/placement.h"
#include "sim/engine/step/series.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/scattered_case.h"

namespace orrery {
namespace {

using test::run;
using test::SharedCluster;
using test::step_ps;

// Rails, racks of several hosts, hashing; open and tapered.
std::vector<SharedCluster> clusters() {
  return {SharedCluster("llama3-8b", "dgx-h100", 512, 32, 4, 1),
          SharedCluster("llama3-8b", "dgx-h100", 512, 32, 4, 4),
          SharedCluster("mixtral-8x7b", "h100-spectrum-x", 256, 16, 4, 3, false),
          SharedCluster("mixtral-8x7b", "gb200-nvl72", 1152, 144, 2, 2),
          SharedCluster("llama3-8b", "h100-roce", 256, 16, 4, 1)};
}

void shuffle(RandomStream& random, auto& items) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

// So many accelerators on whole hosts anywhere, and on one more for the rest; or, where `parts`, on
// any part of hosts.
Grants scatter(RandomStream& random, const SlotShape& shape, std::int64_t gpus, bool parts) {
  std::vector<std::int32_t> hosts(static_cast<std::size_t>(shape.hosts));
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i] = static_cast<std::int32_t>(i);
  shuffle(random, hosts);
  Grants grants;
  const auto most = static_cast<std::uint64_t>(shape.gpus_per_host);
  const std::int64_t all = gpus;
  for (std::size_t i = 0; gpus > 0; ++i) {
    const auto part = static_cast<std::int32_t>(parts ? 1 + random.below(most) : most);
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(gpus, part));
    if (i == hosts.size()) return scatter(random, shape, all, false);
    grants.push_back({.host = hosts[i], .hosts = 1, .gpus = taken});
    gpus -= taken;
  }
  return grants;
}

Grants whole_hosts(std::int32_t first, std::int32_t hosts, std::int32_t gpus) {
  return {{.host = first, .hosts = hosts, .gpus = gpus}};
}

std::int64_t some_gpus(RandomStream& random, const SharedCluster& shared) {
  return (std::int64_t{8} << random.below(4)) * (random.below(3) == 0 ? 3 : 1) *
         (shared.of_host() == 8 ? 1 : 2);
}

}  // namespace

TEST_CASE("the tree of a placement counts parts of parts, largest first") {
  // Hosts of four, domains of two hosts, leaves of two domains, pods of two leaves.
  const SlotShape shape{.hosts = 32,
                        .gpus_per_host = 4,
                        .last_host_gpus = 4,
                        .levels = {{"domain", 2}, {"leaf group", 4}, {"pod", 8}}};
  const auto key = [&](const Grants& grants) { return placement_class(grants, shape).key; };
  using Key = std::vector<std::int32_t>;
  CHECK(key({}) == Key{0});
  CHECK(key({{5, 1, 3}}) == Key{1, 1, 1, 1, 1, 1, 1, 1, 3});
  // A pod; of another one a leaf and, of its other leaf, a host and a half in two domains.
  const Key pod = {1, 2, 1, 2, 1, 2, 4};
  CHECK(key({{8, 8, 4}}) == Key{1, 1, 1, 2, 1, 2, 1, 2, 4});
  Key mixed = {2, 1};
  mixed.insert(mixed.end(), pod.begin(), pod.end());
  for (const std::int32_t i : {1, 2, 1, 1, 2, 1, 2, 4, 1, 2, 1, 1, 1, 4, 1, 1, 1, 2})
    mixed.push_back(i);
  CHECK(key({{31, 1, 2}, {8, 8, 4}, {28, 1, 4}, {24, 4, 4}}) == mixed);
  const PlacementClass placed =
      placement_class({{31, 1, 2}, {8, 8, 4}, {28, 1, 4}, {24, 4, 4}}, shape);
  CHECK_FALSE(placed.contiguous);
  CHECK(placed.gpus == 32 + 16 + 6);
  const ScatteredRanks ranks = canonical_ranks(placed, shape);
  CHECK(ranks.blocks == std::vector<RankBlock>{{0, 52}, {56, 2}});
  CHECK(ranks.cluster == 128);
  CHECK(ranks.rank_on(57) == 53);
  CHECK_FALSE(ranks.rank_on(53));
  CHECK(placement_class({{0, 1, 4}, {1, 1, 2}}, shape).contiguous);
  CHECK(placement_class({{9, 1, 2}, {8, 1, 4}}, shape).contiguous);
  CHECK_FALSE(placement_class({{9, 1, 3}, {8, 1, 3}}, shape).contiguous);
  CHECK_FALSE(placement_class({{9, 2, 4}}, shape).contiguous);  // of two domains
}

TEST_CASE("law: a contiguous placement at any aligned place has today's picoseconds") {
  RandomStream random(fresh(41), 0);
  for (const SharedCluster& shared : clusters()) {
    for (int i = 0; i < 24; ++i) {
      const std::int64_t gpus = some_gpus(random, shared);
      const auto hosts = static_cast<std::int32_t>(gpus / shared.of_host());
      std::int32_t group = 1;  // the least that has room for all
      for (const SlotLevel& level : shared.shape.levels)
        if (group < hosts) group = level.reach;
      if (group < hosts) group = shared.shape.hosts;
      const auto at = static_cast<std::int32_t>(
          random.below(static_cast<std::uint64_t>(shared.shape.hosts / group)));
      Grants grants;  // host by host
      for (std::int32_t h = 0; h < hosts; ++h)
        grants.push_back({at * group + h, 1, shared.shape.gpus_per_host});
      shuffle(random, grants);
      const Layout layout = test::random_layout(random, shared.c.model, shared.c.job, gpus);
      INFO(shared.c.cluster.name << " " << to_text(layout) << " from host " << at * group);
      const PlacementClass placed = placement_class(grants, shared.shape);
      CHECK(placed.contiguous);
      CHECK(placed ==
            placement_class(whole_hosts(0, hosts, shared.shape.gpus_per_host), shared.shape));
      const ScatteredRanks ranks = canonical_ranks(placed, shared.shape);
      for (const NetworkMode network : test::both_networks)
        CHECK(step_ps(shared.c, layout, network, ranks) == step_ps(shared.c, layout, network));
      // And by the way of scattered ranks, where groups lie as evenly as a contiguous placement
      // takes them to: whole leaves of whole domains, no pipeline that changes leaves here and
      // there, no hashing that has one more leaf to be unlucky at.
      const Fabric& fabric = shared.c.cluster.fabric;
      const bool whole = (gpus & (gpus - 1)) == 0 && fabric.scale_up.domain == 8;
      if (!whole || layout.pp > 1 || fabric.scale_out.routing == Routing::ecmp) continue;
      const ScatteredRanks told{.blocks = {{0, gpus}}};
      CHECK(step_ps(shared.c, layout, NetworkMode::ideal, told) ==
            step_ps(shared.c, layout, NetworkMode::ideal));
    }
  }
}

// The same tree at random groups and hosts of the cluster, in rank order.
class Mover {
 public:
  Mover(RandomStream& random, const SlotShape& shape, const PlacementClass& placed)
      : random_(random), shape_(shape), key_(placed.key) {
    move(0, shape.levels.size() + 1, 0, shape.hosts);
  }
  Grants grants;
  ScatteredRanks ranks;

 private:
  std::size_t move(std::size_t at, std::size_t height, std::int32_t first, std::int32_t end) {
    if (height == 0) {
      const std::int32_t gpus = key_[at];
      grants.push_back({.host = first, .hosts = 1, .gpus = gpus});
      ranks.blocks.push_back(
          {.accelerator = std::int64_t{first} * shape_.gpus_per_host, .ranks = gpus});
      return at + 1;
    }
    const std::int32_t reach = height == 1 ? 1 : shape_.levels[height - 2].reach;
    std::vector<std::int32_t> parts;
    for (std::int32_t part = first; part < end; part += reach) parts.push_back(part);
    shuffle(random_, parts);
    const std::int32_t kinds = key_[at++];
    for (std::int32_t kind = 0; kind < kinds; ++kind) {
      const std::int32_t count = key_[at++];
      std::size_t next = at;
      for (std::int32_t i = 0; i < count; ++i) {
        next = move(at, height - 1, parts.back(), parts.back() + reach);
        parts.pop_back();
      }
      at = next;
    }
    return at;
  }

  RandomStream& random_;
  const SlotShape& shape_;
  const std::vector<std::int32_t>& key_;
};

TEST_CASE("law: hosts scattered over equal leaves in any order are one class with one price") {
  RandomStream random(fresh(42), 0);
  for (const SharedCluster& shared : clusters()) {
    const bool hashed = shared.c.cluster.fabric.scale_out.routing == Routing::ecmp;
    std::set<std::vector<std::int32_t>> seen;
    for (int i = 0; i < 24; ++i) {
      const std::int64_t gpus = some_gpus(random, shared);
      const PlacementClass placed =
          placement_class(scatter(random, shared.shape, gpus, i % 4 == 3), shared.shape);
      CHECK(placed.gpus == gpus);
      seen.insert(placed.key);
      const ScatteredRanks canonical = canonical_ranks(placed, shared.shape);
      CHECK((placed.contiguous || canonical.ranks() == gpus));
      Mover moved(random, shared.shape, placed);
      shuffle(random, moved.grants);
      const PlacementClass again = placement_class(moved.grants, shared.shape);
      CHECK(again == placed);
      CHECK(again.contiguous == placed.contiguous);
      CHECK(canonical_ranks(again, shared.shape) == canonical);
      // The canonical place is a fair one: any other of the class costs as much.
      if (placed.contiguous) continue;
      moved.ranks.cluster = canonical.cluster;
      const Layout layout = test::random_layout(random, shared.c.model, shared.c.job, gpus);
      INFO(shared.c.cluster.name << " " << to_text(layout));
      for (const NetworkMode network : test::both_networks) {
        if (hashed && network == NetworkMode::flow) continue;  // each place has its own draw
        CHECK(step_ps(shared.c, layout, network, moved.ranks) ==
              step_ps(shared.c, layout, network, canonical));
      }
    }
    CHECK(seen.size() > 4);
  }
}

TEST_CASE("law: no scattered job is faster than the contiguous one, on either network") {
  RandomStream random(fresh(43), 0);
  for (const SharedCluster& shared : clusters()) {
    for (int i = 0; i < 60; ++i) {
      const std::int64_t gpus = some_gpus(random, shared);
      const PlacementClass placed =
          placement_class(scatter(random, shared.shape, gpus, i % 3 == 2), shared.shape);
      const ScatteredRanks ranks = canonical_ranks(placed, shared.shape);
      const Layout layout = test::random_layout(random, shared.c.model, shared.c.job, gpus);
      INFO(shared.c.cluster.name << " " << to_text(layout));
      for (const NetworkMode network : test::both_networks) {
        const StepResult there = run(shared.c, layout, network, &ranks);
        CHECK(there.step.ps >= step_ps(shared.c, layout, network));
        for (const StageBreakdown& stage : there.stages) CHECK(stage.total() == there.step);
      }
      StepContext context = step_context(shared.c.cluster);
      context.ranks = &ranks;
      StepSeries series(context, shared.c.model, shared.c.job, layout, shared.c.stack);
      const std::int64_t exact = step_ps(shared.c, layout, NetworkMode::ideal, ranks);
      CHECK(series.step(layout).step.ps == exact);
      CHECK(to_ticks(series.least(layout).time).ps <= exact);
    }
  }
}

TEST_CASE("law: a job over several tapered leaves is slower where its traffic crosses them") {
  for (const char* cluster : {"dgx-h100", "h100-spectrum-x"}) {
    // Four hosts a leaf: a job on one leaf, on half of two, or on a host of each of four.
    SharedCluster open("mixtral-8x7b", cluster, 256, 32, 2, 1, false),
        tapered("mixtral-8x7b", cluster, 256, 32, 2, 16, false);
    open.c.job.global_batch = tapered.c.job.global_batch = 32;
    const ScatteredRanks two =
        canonical_ranks(placement_class({{0, 2, 8}, {6, 2, 8}}, open.shape), open.shape);
    const ScatteredRanks four = canonical_ranks(
        placement_class({{0, 1, 8}, {6, 1, 8}, {8, 1, 8}, {13, 1, 8}}, open.shape), open.shape);
    for (const NetworkMode network : test::both_networks) {
      const auto ratio = [&](const SharedCluster& shared, const Layout& layout,
                             const ScatteredRanks& ranks) {
        REQUIRE_FALSE(invalid_reason(layout, shared.c.model, shared.c.job, 32));
        return static_cast<double>(step_ps(shared.c, layout, network, ranks)) /
               static_cast<double>(step_ps(shared.c, layout, network));
      };
      // Gradients over all hosts, and exchanges of tokens too.
      const Layout gradients{.tp = 8, .dp = 4, .zero_stage = 1},
          exchanges{.tp = 4, .dp = 8, .ep = 8, .etp = 4, .zero_stage = 1};
      for (const Layout& layout : {gradients, exchanges}) {
        INFO(cluster << " " << to_text(layout));
        CHECK(ratio(open, layout, two) < 1.02);
        CHECK(ratio(tapered, layout, two) > 1.1);
        CHECK(ratio(tapered, layout, four) > 1.1);
      }
      // A leaf for each stage: only messages between them cross.
      const Layout stages{.tp = 8, .pp = 2, .dp = 2, .zero_stage = 1};
      CHECK(ratio(tapered, stages, two) < 1.02);
      CHECK(ratio(tapered, stages, four) > 1.1);
    }
  }
}

namespace {

// What counting ranks gives of a kind of groups.
struct Counted {
  std::size_t domains = 0;
  int tier = 0;
};

// Groups of ranks that differ along `axes` only.
Counted count(const Layout& l, const Fabric& fabric, const ScatteredRanks& ranks,
              std::initializer_list<Parallel> axes) {
  std::vector<std::int64_t> at;
  for (const RankBlock& block : ranks.blocks)
    for (std::int64_t i = 0; i < block.ranks; ++i) at.push_back(block.accelerator + i);
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> groups;
  for (std::int64_t r = 0; r < l.gpus(); ++r) {
    std::vector<std::int64_t> key;
    for (const Parallel axis : l.rank_order.axes())
      if (std::find(axes.begin(), axes.end(), axis) == axes.end())
        key.push_back(r / l.stride(axis) % l.size(axis));
    groups[key].push_back(at[static_cast<std::size_t>(r)]);
  }
  Counted c;
  for (const auto& [key, group] : groups) {
    std::set<std::int64_t> domains;
    for (const std::int64_t a : group) {
      domains.insert(a / fabric.scale_up.domain);
      c.tier = std::max(c.tier, path_between(fabric, group.front(), a).tier);
    }
    c.domains = std::max(c.domains, domains.size());
  }
  return c;
}

}  // namespace

TEST_CASE("groups of scattered ranks are as far apart as counting them gives") {
  RandomStream random(fresh(45), 0);
  using enum Parallel;
  const RankOrder orders[] = {RankOrder(), RankOrder({tp, pp, cp, dp}),
                              RankOrder({dp, tp, cp, pp})};
  for (const SharedCluster& shared : clusters()) {
    const Fabric& fabric = shared.c.cluster.fabric;
    for (int i = 0; i < 60; ++i) {
      const std::int64_t gpus = some_gpus(random, shared);
      Layout l = test::random_layout(random, shared.c.model, shared.c.job, gpus);
      l.rank_order = orders[random.below(3)];
      if (unplaceable_reason(l, fabric)) continue;
      const PlacementClass placed =
          placement_class(scatter(random, shared.shape, gpus, i % 2 == 0), shared.shape);
      if (placed.contiguous) continue;
      const ScatteredRanks ranks = canonical_ranks(placed, shared.shape);
      const Placement near = place(l, fabric), far = place(l, fabric, ranks);
      INFO(shared.c.cluster.name << " " << to_text(l));
      const ScatteredGroups groups(ranks, fabric);
      CHECK(far.domains == groups.domains());
      CHECK(far.ranks_per_domain == groups.fullest());
      const auto check = [&](const GroupShape& g, const GroupShape& before,
                             std::initializer_list<Parallel> axes) {
        if (g.size == 1) return;
        const Counted c = count(l, fabric, ranks, axes);
        if (groups.even())
          CHECK(g.domains >= static_cast<std::int64_t>(c.domains));
        else
          CHECK(g.domains == static_cast<std::int64_t>(c.domains));
        CHECK(g.size == before.size);
        CHECK(g.span >= before.span);
        if (c.tier == 0 || g.domains == 1) return;
        CHECK(nic_path(fabric, g.span).tier ==
              std::max(nic_path(fabric, before.span).tier, c.tier));
      };
      check(far.tensor, near.tensor, {Parallel::tp});
      check(far.context, near.context, {Parallel::cp});
      check(far.data, near.data, {Parallel::dp});
      check(far.data_context, near.data_context, {Parallel::cp, Parallel::dp});
      if (l.ep * l.etp == l.tp * l.cp * l.dp)
        check(far.expert_ranks, near.expert_ranks, {Parallel::tp, Parallel::cp, Parallel::dp});
      // Neighbouring stages one pair after the other.
      int tier = near.pipeline.tier;
      std::vector<std::int64_t> at;
      for (const RankBlock& block : ranks.blocks)
        for (std::int64_t a = 0; a < block.ranks; ++a) at.push_back(block.accelerator + a);
      const std::int64_t stride = l.stride(Parallel::pp);
      for (std::int64_t r = 0; r < gpus; ++r)
        if (r / stride % l.pp + 1 < l.pp)
          tier = std::max(tier, path_between(fabric, at[static_cast<std::size_t>(r)],
                                             at[static_cast<std::size_t>(r + stride)])
                                    .tier);
      CHECK(far.pipeline.tier == tier);
      if (l.pp > 1 && tier > 0) CHECK(nic_path(fabric, far.stage_pair.span).tier >= tier);
    }
  }
}

}  // namespace orrery
