// SPDX-License-Identifier: Apache-2.0
// Knows what ECMP promises: even in the long run, uneven in every round, as balls into bins say.
#include "topologies/routing/hashing.h"
#include "sim/base/random.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "tests/topologies/random_fabric.h"
#include "topologies/routing/routing.h"

namespace orrery {
namespace {

// `leaves` of `flows` accelerators under `uplinks` spines, one link between a leaf and a spine.
struct Wires {
  std::int64_t leaves, flows, uplinks, pairs;
};
ClosShape shape_of(const Wires& w) {
  ClosShape shape{.accelerators = w.leaves * w.flows};
  shape.tiers = {
      {.reach = w.flows, .groups = w.leaves, .switches = 1, .down = w.flows, .up = w.uplinks},
      {.reach = shape.accelerators, .groups = 1, .switches = w.uplinks, .down = w.leaves}};
  return shape;
}
Fabric one_gpu_hosts() {
  Fabric fabric = small_fabric();
  fabric.scale_up.domain = 1;
  return fabric;
}
RoutingOptions hashed(const Wires& w, std::uint64_t seed) {
  return {.routing = Routing::ecmp, .paths_per_flow = w.pairs, .seed = seed};
}

// Every accelerator sends one flow and gets one; those of a leaf go to all other leaves in turn.
std::vector<std::vector<RouteLink>> exchange(const Router& router, const Wires& w,
                                             std::uint64_t round) {
  std::vector<std::vector<RouteLink>> flows;
  for (std::int64_t leaf = 0; leaf < w.leaves; ++leaf)
    for (std::int64_t i = 0; i < w.flows; ++i) {
      const std::int64_t to = (leaf + 1 + i % (w.leaves - 1)) % w.leaves;
      router.route(leaf * w.flows + i, to * w.flows + i, round, flows.emplace_back());
    }
  return flows;
}

TEST_CASE("hashes hit every uplink about equally", "[ecmp]") {
  const Wires w{.leaves = 8, .flows = 32, .uplinks = 32, .pairs = 1};
  const Fabric fabric = one_gpu_hosts();
  const Router router(fabric, shape_of(w), hashed(w, 1));
  std::map<LinkName, double> hits;
  constexpr int rounds = 200;
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (const auto& flow : exchange(router, w, round))
      for (const RouteLink& l : flow)
        if (l.link.kind == LinkKind::up || l.link.kind == LinkKind::down) ++hits[l.link];
  REQUIRE(hits.size() == 2 * 8 * 32);
  double chi_square = 0;
  for (const auto& [link, n] : hits) chi_square += (n - rounds) * (n - rounds) / rounds;
  // 16 sums of 32 links: 496 degrees of freedom, deviation 31.5. Far below is as wrong as above.
  CHECK(chi_square > 496 - 4 * 31.5);
  CHECK(chi_square < 496 + 4 * 31.5);
}

TEST_CASE("a seed fixes every path, another moves most", "[ecmp]") {
  const Wires w{.leaves = 8, .flows = 32, .uplinks = 32, .pairs = 1};
  const Fabric fabric = one_gpu_hosts();
  const Router first(fabric, shape_of(w), hashed(w, 1)), same(fabric, shape_of(w), hashed(w, 1)),
      other(fabric, shape_of(w), hashed(w, 2));
  int moved = 0, relabelled = 0;
  for (std::int64_t a = 0; a < 200; ++a) {
    std::vector<RouteLink> x, y, z, t;
    first.route(a, (a + 40) % 256, 7, x);
    same.route(a, (a + 40) % 256, 7, y);
    other.route(a, (a + 40) % 256, 7, z);
    first.route(a, (a + 40) % 256, 8, t);
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(x[i].link == y[i].link);
      CHECK(x[i].share == y[i].share);
    }
    moved += x[1].link != z[1].link ? 1 : 0;
    relabelled += x[1].link != t[1].link ? 1 : 0;
  }
  CHECK(moved > 180);
  CHECK(relabelled > 180);
}

TEST_CASE("queue pairs use every port, and go around failed links", "[ecmp]") {
  Fabric fabric = one_gpu_hosts();
  const Wires w{.leaves = 4, .flows = 8, .uplinks = 4, .pairs = 6};
  ClosShape shape = shape_of(w);
  shape.planes = 2;
  shape.ports_per_accelerator = 2;
  const std::vector<NetworkFault> faults = {{.kind = FaultKind::leaf_spine, .leaf = 1, .spine = 2},
                                            {.kind = FaultKind::nic, .accelerator = 3, .plane = 1}};
  const Router router(fabric, shape, hashed(w, 3), faults);
  for (std::int64_t a = 0; a < 8; ++a) {
    std::vector<RouteLink> out;
    router.route(a, 8 + a, 0, out);
    double sent = 0;
    std::map<int, int> ports;
    for (const RouteLink& l : out) {
      const bool on_leaf = l.link.kind == LinkKind::down && l.link.plane == 0;
      CHECK_FALSE((on_leaf && l.link.upper == 2));
      if (l.link.kind != LinkKind::nic_out) continue;
      sent += l.share;
      ++ports[l.link.plane];
    }
    CHECK(sent == Approx(1));
    CHECK(ports == (a == 3 ? std::map<int, int>{{0, 2}} : std::map<int, int>{{0, 2}, {1, 2}}));
  }
}

TEST_CASE("the worst load is what balls into bins say", "[ecmp]") {
  const Fabric fabric = one_gpu_hosts();
  for (const Wires& w : {Wires{8, 32, 32, 1}, Wires{32, 16, 16, 1}, Wires{8, 32, 32, 4},
                         Wires{16, 8, 16, 2}, Wires{4, 64, 16, 1}, Wires{8, 16, 16, 16}}) {
    INFO(w.leaves << " leaves, " << w.flows << " flows on " << w.uplinks << " links, " << w.pairs);
    const Router router(fabric, shape_of(w), hashed(w, 11));
    double worst = 0, time = 0;
    constexpr int rounds = 300;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      std::map<LinkName, double> load;
      for (const auto& flow : exchange(router, w, round))
        for (const RouteLink& l : flow) load[l.link] += l.share;
      double most = 0;
      for (const auto& [link, x] : load)
        if (link.kind == LinkKind::up || link.kind == LinkKind::down) most = std::max(most, x);
      worst += most / rounds;
      time += std::max(1.0, most) / rounds;
    }
    CHECK(ecmp_worst_load(w.flows, w.uplinks, w.pairs, w.leaves) == Approx(worst).epsilon(0.03));
    const double ideal =
        std::max(1.0, static_cast<double>(w.flows) / static_cast<double>(w.uplinks));
    CHECK(ecmp_share(w.flows, w.uplinks, w.pairs, w.leaves) == Approx(ideal / time).epsilon(0.03));
  }
}

// Queue pairs of one job among those of others; each draws its spine, and with it a link up of its
// leaf and one down.
TEST_CASE("the worst load that one of several jobs meets is what balls into bins say", "[ecmp]") {
  struct Met {
    std::int64_t own, others, uplinks, leaves;  // parts a leaf
  };
  for (const Met& m :
       {Met{8, 0, 32, 8}, Met{8, 24, 32, 8}, Met{2, 30, 32, 4}, Met{16, 16, 16, 12}}) {
    INFO(m.own << " of " << m.own + m.others << " parts on " << m.uplinks << " links");
    RandomStream random(11, 4);
    double worst = 0;
    constexpr int rounds = 4000;
    for (int round = 0; round < rounds; ++round) {
      std::map<std::pair<std::int64_t, std::uint64_t>, int> up, down;
      std::map<std::pair<std::int64_t, std::uint64_t>, int> own_up, own_down;
      for (std::int64_t leaf = 0; leaf < m.leaves; ++leaf)
        for (std::int64_t part = 0; part < m.own + m.others; ++part) {
          const std::uint64_t spine = random.below(static_cast<std::uint64_t>(m.uplinks));
          const std::int64_t to = (leaf + 1 + part % (m.leaves - 1)) % m.leaves;
          ++up[{leaf, spine}];
          ++down[{to, spine}];
          if (part >= m.own) continue;
          own_up[{leaf, spine}] = own_down[{to, spine}] = 1;
        }
      int most = 0;
      for (const auto& [link, one] : own_up) most = std::max(most, up[link]);
      for (const auto& [link, one] : own_down) most = std::max(most, down[link]);
      worst += static_cast<double>(most) / rounds;
    }
    CHECK(ecmp_worst_met(static_cast<double>(m.own), static_cast<double>(m.others), m.uplinks,
                         m.leaves) == Approx(worst).epsilon(0.03));
  }
}

// Max-min rates of parts with a cap each, over links of capacity 1: filling by whole links.
double mean_rate(const std::vector<std::vector<LinkName>>& parts, double cap) {
  std::vector<double> rate(parts.size(), -1);
  std::map<LinkName, double> left;
  for (const auto& part : parts)
    for (const LinkName& link : part) left[link] = 1;
  for (;;) {
    std::map<LinkName, int> open;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (rate[i] < 0)
        for (const LinkName& link : parts[i]) ++open[link];
    if (open.empty()) break;
    double level = cap;
    for (const auto& [link, n] : open) level = std::min(level, left[link] / n);
    std::map<LinkName, double> before = left;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (rate[i] >= 0) continue;
      bool stops = level >= cap;
      for (const LinkName& link : parts[i])
        stops |= before[link] / open[link] <= level * (1 + 1e-12);
      if (!stops) continue;
      rate[i] = level;
      for (const LinkName& link : parts[i]) left[link] -= level;
    }
  }
  return std::accumulate(rate.begin(), rate.end(), 0.0) / static_cast<double>(parts.size());
}

TEST_CASE("unsynchronised flows keep a share between its bounds", "[ecmp]") {
  const Fabric fabric = one_gpu_hosts();
  for (const Wires& w : {Wires{8, 32, 32, 1}, Wires{8, 16, 16, 1}, Wires{8, 32, 16, 1}}) {
    INFO(w.leaves << " leaves, " << w.flows << " flows on " << w.uplinks);
    const Router router(fabric, shape_of(w), hashed(w, 17));
    double mean = 0;
    constexpr int rounds = 20;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      std::vector<std::vector<LinkName>> parts;
      for (const auto& flow : exchange(router, w, round)) {
        parts.emplace_back();
        for (const RouteLink& l : flow)
          if (l.link.kind == LinkKind::up || l.link.kind == LinkKind::down)
            parts.back().push_back(l.link);
      }
      mean += mean_rate(parts, 1) / rounds;
    }
    mean /= std::min(1.0, static_cast<double>(w.uplinks) / static_cast<double>(w.flows));
    const EcmpAverage share = ecmp_average_share(w.flows, w.uplinks, w.pairs);
    CHECK(mean > share.low);
    CHECK(mean < share.high);
    CHECK(share.high - share.low < 0.3);
  }
}

TEST_CASE("more queue pairs and more links lose less", "[ecmp]") {
  for (const std::int64_t uplinks : {1, 2, 16, 64}) {
    double before = 0;
    for (const std::int64_t pairs : {1, 2, 4, 16, 64, 256}) {
      const double share = ecmp_share(uplinks, uplinks, pairs, 32);
      CHECK(share > before - (uplinks == 1 ? 2 : 0));
      CHECK(share <= 1);
      before = share;
    }
    CHECK(ecmp_share(uplinks, 16 * uplinks, 1, 32) >= ecmp_share(uplinks, uplinks, 1, 32));
  }
  CHECK(ecmp_share(8, 1, 4, 2) == Approx(1));  // one link: nothing to hash
  // 8k accelerators, 32 to a leaf: plain ECMP leaves a sixth to a synchronised collective, and
  // sixteen queue pairs half.
  CHECK(ecmp_share(32, 32, 1, 256) == Approx(0.14).margin(0.02));
  CHECK(ecmp_share(32, 32, 16, 256) == Approx(0.48).margin(0.03));
}

}  // namespace
}  // namespace orrery
