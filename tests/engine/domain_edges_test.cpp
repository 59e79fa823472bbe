// SPDX-License-Identifier: Apache-2.0
// Knows what rings, trees and pairings between scale-up domains have to be, for any groups.
#include "sim/engine/collectives/domain_edges.h"

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

namespace orrery {
namespace {

using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

// Groups with `domains` members each, the job made of `blocks` blocks of them.
struct Groups {
  GroupShape group;
  std::int64_t domains = 0;
};

Groups random_job(std::int64_t least, std::int64_t most) {
  Groups job;
  job.group.domains = *rc::gen::inRange<std::int64_t>(least, most + 1);
  job.group.domain_step = *rc::gen::inRange<std::int64_t>(1, 5);
  job.group.size = job.group.domains;
  job.domains = job.group.domains * job.group.domain_step * *rc::gen::inRange<std::int64_t>(1, 4);
  return job;
}

std::int64_t group_of(std::int64_t domain, const GroupShape& g) {
  const std::int64_t block = g.domains * g.domain_step;
  return domain / block * g.domain_step + domain % block % g.domain_step;
}

std::map<std::int64_t, double> sent(const std::vector<DomainEdge>& edges) {
  std::map<std::int64_t, double> by_domain;
  for (const DomainEdge& e : edges) by_domain[e.from] += e.share;
  return by_domain;
}

std::vector<DomainEdge> one_group(Algorithm algorithm, std::int64_t domains,
                                  const EdgeOptions& options = {}) {
  const GroupShape group{.size = domains, .domains = domains};
  return domain_edges(algorithm == Algorithm::direct ? Kind::all_to_all : Kind::all_reduce,
                      algorithm, group, domains, options);
}

// Steps up to the root; -1 for a walk that never gets there.
int depth(std::int64_t node, std::int64_t nodes) {
  int steps = 0;
  while (node != 0 && steps <= 64) {
    node = tree_parent(node, nodes);
    if (node < 0 || node >= nodes) return -1;
    ++steps;
  }
  return node == 0 ? steps : -1;
}

}  // namespace

TEST_CASE("every edge joins two domains of one group, whatever the algorithm") {
  CHECK(rc::check([] {
    const Groups job = random_job(2, 40);
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::hierarchical, Algorithm::tree, Algorithm::nvls_tree,
          Algorithm::pat, Algorithm::direct, Algorithm::deepep}) {
      const bool exchange = algorithm == Algorithm::direct || algorithm == Algorithm::deepep;
      const auto edges = domain_edges(exchange ? Kind::all_to_all : Kind::all_gather, algorithm,
                                      job.group, job.domains);
      RC_ASSERT(!edges.empty());
      for (const DomainEdge& e : edges) {
        RC_ASSERT(e.from >= 0 && e.from < job.domains && e.to >= 0 && e.to < job.domains);
        RC_ASSERT(e.from != e.to);
        RC_ASSERT(group_of(e.from, job.group) == group_of(e.to, job.group));
        RC_ASSERT(e.share > 0 && e.share <= 1);
      }
      // All groups alike: every domain takes part, none sends more than a busiest rank does.
      const auto shares = sent(edges);
      RC_ASSERT(static_cast<std::int64_t>(shares.size()) == job.domains);
      double most = 0;
      for (const auto& [domain, share] : shares) most = std::max(most, share);
      RC_ASSERT(std::abs(most - 1) < 1e-9);
    }
  }));
}

TEST_CASE("groups of domains are a partition, a last block keeps what it has") {
  CHECK(rc::check([] {
    const Groups job = random_job(1, 20);
    const std::int64_t domains = job.domains - *rc::gen::inRange<std::int64_t>(0, job.domains);
    std::vector<int> seen(static_cast<std::size_t>(domains), 0);
    for (const DomainGroup& g : domain_groups(job.group, domains)) {
      RC_ASSERT(g.count >= 1 && g.count <= job.group.domains);
      for (std::int64_t j = 0; j < g.count; ++j) {
        RC_ASSERT(g.at(j) < domains);
        ++seen[static_cast<std::size_t>(g.at(j))];
      }
    }
    for (const int times : seen) RC_ASSERT(times == 1);
  }));
}

TEST_CASE("rings close after one round of their group") {
  CHECK(rc::check([] {
    const Groups job = random_job(2, 40);
    std::map<std::int64_t, std::int64_t> next;
    for (const DomainEdge& e :
         domain_edges(Kind::all_gather, Algorithm::ring, job.group, job.domains)) {
      RC_ASSERT(e.share == 1);
      RC_ASSERT(next.emplace(e.from, e.to).second);
    }
    for (std::int64_t x = 0; x < job.domains; ++x) {
      std::int64_t at = next.at(x), steps = 1;
      for (; at != x && steps <= job.domains; ++steps) at = next.at(at);
      RC_ASSERT(steps == job.group.domains);
    }
  }));
}

TEST_CASE("the tree spans, no node has more than two children, and it is as deep as a logarithm") {
  for (std::int64_t nodes = 1; nodes <= 520; ++nodes) {
    std::vector<int> children(static_cast<std::size_t>(nodes), 0);
    for (std::int64_t v = 1; v < nodes; ++v) {
      const int steps = depth(v, nodes);
      INFO("node " << v << " of " << nodes);
      REQUIRE(steps > 0);
      REQUIRE(steps <= std::log2(static_cast<double>(nodes)) + 1);
      ++children[static_cast<std::size_t>(tree_parent(v, nodes))];
    }
    CHECK(*std::max_element(children.begin(), children.end()) <= 2);
    CHECK(tree_parent(0, nodes) == -1);
  }
}

TEST_CASE("the busiest node of both trees sends double_tree_copies halves, all but the roots") {
  for (std::int64_t nodes = 2; nodes <= 260; ++nodes) {
    const auto edges = one_group(Algorithm::tree, nodes);
    CHECK(edges.size() == static_cast<std::size_t>(4 * (nodes - 1)));  // two trees, up and down
    std::map<std::int64_t, int> halves;
    for (const DomainEdge& e : edges) ++halves[e.from];
    int most = 0;
    for (const auto& [node, count] : halves) most = std::max(most, count);
    INFO(nodes << " nodes");
    CHECK(most == double_tree_copies(nodes));
  }
}

TEST_CASE("pat sends the group's other parts, in as many steps as a logarithm") {
  for (std::int64_t domains = 2; domains <= 130; ++domains) {
    const auto edges = one_group(Algorithm::pat, domains);
    const auto steps = static_cast<std::size_t>(std::ceil(std::log2(domains) - 1e-9));
    CHECK(edges.size() == steps * static_cast<std::size_t>(domains));
    for (const auto& [domain, share] : sent(edges)) CHECK(share == Approx(1).epsilon(1e-12));
  }
  // Six domains: one block one further on, two blocks two further on, two of the last step's four.
  std::map<std::int64_t, double> shares;
  for (const DomainEdge& e : one_group(Algorithm::pat, 6))
    if (e.from == 0) shares[e.to] = e.share;
  CHECK(shares[1] == Approx(1 / 5.0));
  CHECK(shares[2] == Approx(2 / 5.0));
  CHECK(shares[4] == Approx(2 / 5.0));
}

TEST_CASE("an all-to-all meets every pair once; a sample keeps what each domain sends and gets") {
  const auto all = one_group(Algorithm::direct, 17);
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const DomainEdge& e : all) {
    CHECK(e.share == Approx(1 / 16.0));
    CHECK(pairs.emplace(e.from, e.to).second);
  }
  CHECK(pairs.size() == 17 * 16);

  // Over many seeds every distance is drawn as often as any other.
  std::map<std::int64_t, double> by_distance;
  constexpr int seeds = 2000;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto sample = one_group(Algorithm::direct, 17, {.most_peers = 4, .seed = seed});
    CHECK(sample.size() == 17 * 4);
    std::map<std::int64_t, double> received;
    for (const DomainEdge& e : sample) {
      received[e.to] += e.share;
      if (e.from == 0) by_distance[e.to] += e.share;
    }
    for (const auto& [domain, share] : sent(sample)) CHECK(share == Approx(1));
    for (const auto& [domain, share] : received) CHECK(share == Approx(1));
  }
  CHECK(by_distance.size() == 16);
  // Binomial: 2000 draws of 4 in 16, five standard deviations of the mean share 1 / 16.
  for (const auto& [distance, sum] : by_distance)
    CHECK(sum / seeds == Approx(1 / 16.0).margin(5 * std::sqrt(0.25 * 0.75 / seeds) / 4));
  CHECK(one_group(Algorithm::direct, 200, {.most_peers = 0}).size() == 200 * 199);
}

TEST_CASE("stages send to the next one, collnet leaves it to switches, inside nothing crosses") {
  const GroupShape pair{.size = 2, .domains = 2, .domain_step = 3};
  const auto sends = domain_edges(Kind::send_receive, Algorithm::direct, pair, 9);
  CHECK(sends.size() == 6);  // the last stage's three domains have nobody to send to
  for (const DomainEdge& e : sends) CHECK(e.to - e.from == 3);
  CHECK(one_group(Algorithm::collnet, 8).empty());
  CHECK(domain_edges(Kind::all_reduce, Algorithm::ring, {.size = 8, .per_domain = 8}, 4).empty());
}

}  // namespace orrery
