// SPDX-License-Identifier: Apache-2.0
// Knows what links between switches do to collectives of jobs on hosts anywhere in a cluster.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "sim/engine/network/flow_network.h"
#include "sim/engine/network/loaded_transfer.h"
#include "tests/engine/scattered_case.h"

namespace orrery {
namespace {

using test::SharedCluster;
using test::step_ps;

JobGround ground_of(const ScatteredRanks& ranks) {
  JobGround job{.ranks = ranks.ranks(), .ranks_per_domain = 8, .domain = 8};
  for (const DomainRanks& d : domains_of(ranks, 8)) job.domain_at.push_back(d.domain);
  job.cluster = ranks.cluster;
  return job;
}

}  // namespace

TEST_CASE("a ring that changes leaves at every host loads their links with every host") {
  // Leaves of two hosts, a fourth of the rate up: half a host's share of a leaf's links.
  const SharedCluster shared("llama3-8b", "h100-spectrum-x", 64, 16, 8, 4, false);
  const Fabric& fabric = shared.c.cluster.fabric;
  const Collective ring{.kind = CollectiveKind::all_gather,
                        .group = {.size = 8, .domains = 8, .span = 64, .sharing = 8},
                        .bytes = Bytes(1e9)};
  const CollectiveTime alone = collective_time(ring, fabric, shared.c.cluster.collective_costs);
  const double asked =
      (alone.scale_out_bytes / alone.transfer).si() /
      (fabric.scale_out.nic_bandwidth.get().si() * fabric.scale_out.efficiency.get());
  JobGround job{.ranks = 64, .ranks_per_domain = 8, .domain = 8};
  const auto stretch = [&] { return loaded_transfer(ring, alone, fabric, job) / alone.transfer; };
  CHECK(stretch() == Approx(2 * asked));
  job.domain_at = {0, 2, 4, 6, 1, 3, 5, 7};
  CHECK(stretch() == Approx(4 * asked));
  // A leaf for each: one host loads what two could. As much as side by side.
  job.domain_at = {0, 2, 4, 6, 8, 10, 12, 14};
  CHECK(stretch() == Approx(2 * asked));
}

TEST_CASE("no collective of a scattered job gains by links that others leave free") {
  // Leaves of two hosts, a fourth of the rate up. Side by side two hosts share what is left of a
  // leaf's links; a leaf for each host leaves it twice as much.
  const SharedCluster shared("llama3-8b", "h100-spectrum-x", 128, 16, 8, 4, false);
  const Fabric& fabric = shared.c.cluster.fabric;
  const CollectiveCosts& costs = shared.c.cluster.collective_costs;
  const Collective exchange{.kind = CollectiveKind::all_to_all,
                            .group = {.size = 8, .domains = 8, .span = 128, .sharing = 8},
                            .bytes = Bytes(1e9)};
  JobGround job{.ranks = 64, .ranks_per_domain = 8, .domain = 8};
  FlowNetwork near(fabric, costs, job, {});
  job.domain_at = {0, 2, 4, 6, 8, 10, 12, 14};
  CHECK(flow_price(exchange, fabric, costs, job, {}).time.time < near.price(exchange).time);
  FlowNetwork far(fabric, costs, job, {});
  CHECK(far.price(exchange).time == near.price(exchange).time);
  // Others' traffic is where they are, not where the job's domains of the same number would be.
  Conditions busy;
  busy.background = {{.first_gpu = 8, .gpus = 32, .load = 1}};
  CHECK(flow_price(exchange, fabric, costs, job, busy).time.time >
        1.1 * flow_price(exchange, fabric, costs, job, {}).time.time);
  busy.background = {{.first_gpu = 128, .gpus = 32, .load = 1}};
  CHECK(flow_price(exchange, fabric, costs, job, busy).time.time ==
        flow_price(exchange, fabric, costs, job, {}).time.time);
}

TEST_CASE("streams of a large scattered job meet on a part of it with leaves and pods as full") {
  // Pods of 128 hosts, with links from pod to pod for four.
  SharedCluster shared("llama3-8b", "dgx-h100", 4096, 128, 8, 32);
  shared.c.cluster.fabric.scale_out.tiers[0].oversubscription.value = 1;
  const auto part_of_whole = [&](std::int32_t of_leaf) {
    Grants grants;  // on each of 32 leaves
    for (std::int32_t leaf = 0; leaf < 32; ++leaf) grants.push_back({leaf * 16, of_leaf, 8});
    const ScatteredRanks ranks =
        canonical_ranks(placement_class(grants, shared.shape), shared.shape);
    FlowNetwork network(shared.c.cluster.fabric, shared.c.cluster.collective_costs,
                        ground_of(ranks), {});
    const std::int64_t domains = ranks.ranks() / 8;
    const Collective exchange{
        .kind = CollectiveKind::all_to_all,
        .group = {.size = domains, .domains = domains, .span = 4096, .sharing = 8},
        .bytes = Bytes(1e9)};
    network.start(exchange, {});
    const auto end = network.next_completion();
    REQUIRE(end);
    const Layout layout{.tp = 8, .dp = domains, .zero_stage = 1};
    CHECK(step_ps(shared.c, layout, NetworkMode::flow, ranks) >=
          step_ps(shared.c, layout, NetworkMode::flow));
    return to_seconds(end->time) / network.price(exchange).time;
  };
  // Two pods of four whole: a half of the messages goes from pod to pod, not three quarters.
  CHECK(part_of_whole(4) == Approx(2.0 / 3).epsilon(0.15));
  // A half of two pods, about a third of what crosses there; one pod whole would cross nothing.
  CHECK(part_of_whole(8) == Approx(1.0 / 3).epsilon(0.3));
}

TEST_CASE("flows that were laid out by themselves lie among others as if they were added there") {
  const Cluster cluster = load_cluster("h100-roce", 1024);
  const JobGround job{.ranks = 64,
                      .ranks_per_domain = 8,
                      .domain = 8,
                      .domain_at = {1, 2, 5, 17, 40, 41, 90, 127},
                      .cluster = 1024};
  const auto collective = [](CollectiveKind kind, std::int64_t domains) {
    return Collective{
        .kind = kind,
        .group = {.size = domains * 8, .per_domain = 8, .domains = domains, .span = 64},
        .bytes = Bytes(1e9)};
  };
  FlowGround added(cluster.fabric, job, {}, {}), laid(cluster.fabric, job, {}, {});
  for (const Collective& c :
       {collective(CollectiveKind::all_to_all, 4), collective(CollectiveKind::all_gather, 8),
        collective(CollectiveKind::all_to_all, 2)}) {
    const CollectiveTime alone = collective_time(c, cluster.fabric, cluster.collective_costs);
    FlowGround single(cluster.fabric, job, {}, {});
    const FlowRange of_single = single.add(c, alone);
    const FlowRange a = added.add(c, alone), b = laid.add_laid(single, of_single);
    CHECK(a.first == b.first);
    CHECK(a.last == b.last);
    CHECK(a.crosses == b.crosses);
  }
  const FlowTable &a = added.table(), &b = laid.table();
  REQUIRE(a.flows.size() == b.flows.size());
  REQUIRE(a.uses.size() == b.uses.size());
  REQUIRE(a.links.size() == b.links.size());
  for (FlowIndex f = 0; f < a.flows.size(); ++f) {
    CHECK(a.flows[f].colour == b.flows[f].colour);
    CHECK(a.flows[f].bytes == b.flows[f].bytes);
    CHECK(added.home(f) == laid.home(f));
    // Links have other numbers: ports and engines come first.
    std::map<std::string, double> of_a, of_b;
    for (const FlowUse& use : a.uses_of(a.flows[f])) of_a[added.describe(use.link)] += use.weight;
    for (const FlowUse& use : b.uses_of(b.flows[f])) of_b[laid.describe(use.link)] += use.weight;
    CHECK(of_a == of_b);
    std::array<double, 5> by_tier{};  // engines are none
    for (const FlowUse& use : a.uses_of(a.flows[f]))
      if (const int tier = added.tier(use.link); tier > 0)
        by_tier[static_cast<std::size_t>(tier)] += use.weight;
    CHECK(by_tier[1] == 2);  // all queue pairs, out of a NIC and into one
    CHECK((by_tier[2] == 0 || by_tier[2] == 2));
  }
  std::map<std::string, std::multiset<double>> links_a, links_b;
  for (LinkIndex l = 0; l < a.links.size(); ++l) {
    links_a[added.describe(l)].insert(a.links[l].capacity);
    links_b[laid.describe(l)].insert(b.links[l].capacity);
  }
  CHECK(links_a == links_b);
}

}  // namespace orrery
