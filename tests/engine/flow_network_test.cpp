// SPDX-License-Identifier: Apache-2.0
// Knows what the flow network promises: folded equals unfolded, alone equals the alpha-beta model,
// bytes are conserved, faults and other traffic cost what they take away.
#include "sim/engine/network/flow_network.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "sim/engine/cluster.h"
#include "sim/engine/collectives/domain_edges.h"
#include "sim/engine/flows/short_job.h"
#include "sim/engine/network/ideal_network.h"

namespace orrery {
namespace {

using Kind = CollectiveKind;

// A small cluster on a wiring of the catalogue, with a job in whole domains.
struct Case {
  Fabric fabric;
  CollectiveCosts costs;
  JobGround job;
  std::vector<Collective> collectives;
  Conditions conditions;
};

const std::vector<std::string>& small_fabrics() {
  static const std::vector<std::string> names = {
      "nvlink4-ndr",      "nvlink4-spectrum-x", "nvlink5-800g-dual-plane",
      "nvlink3-hdr",      "mi300x-roce",        "nvlink4-h800-multiplane",
      "nvlink5-efa-3200", "nvlink4x4-ndr",      "nvlink4-roce",
      "nvlink2-edr",      "nvlink4-tcpx",       "nvlink5-xdr"};
  return names;
}

// The wiring in miniature: few domains under a leaf, tapered, with planes, so that every layer of
// it can be what binds.
void shrink(Fabric& fabric) {
  ScaleOut& out = fabric.scale_out;
  std::int64_t reach = fabric.scale_up.domain * *rc::gen::inRange<std::int64_t>(1, 4);
  for (Tier& tier : out.tiers) {
    tier.radix = 0;
    tier.oversubscription.value = *rc::gen::element(1.0, 1.0, 2.0, 4.0, 7.0);
    if (tier.reach == 0) continue;
    tier.reach = reach;
    reach *= *rc::gen::inRange<std::int64_t>(2, 4);
  }
  out.planes = *rc::gen::element<std::int64_t>(1, 1, 2, 4);
}

Collective random_collective(const JobGround& job) {
  const auto kinds = {Kind::all_reduce, Kind::all_gather,   Kind::reduce_scatter,
                      Kind::all_to_all, Kind::send_receive, Kind::broadcast};
  Collective c{.kind = *rc::gen::elementOf(std::vector<Kind>(kinds))};
  const std::int64_t domains = job.domains();
  const std::int64_t step =
      *rc::gen::inRange<std::int64_t>(1, std::max<std::int64_t>(2, domains / 2));
  GroupShape& g = c.group;
  g.domain_step = step;
  g.domains = *rc::gen::inRange<std::int64_t>(1, domains / step + 1);
  g.per_domain = job.ranks_per_domain;
  if (c.kind == Kind::send_receive) {
    g.domains = 2;
    g.per_domain = 1;
  }
  g.size = g.domains * g.per_domain;
  g.sharing = job.ranks_per_domain / g.per_domain;
  g.span = ((g.domains - 1) * step + 1) * job.domain;
  c.bytes = Bytes(static_cast<double>(*rc::gen::inRange<int>(1, 200)) * 262144);
  return c;
}

NetworkFault random_fault(const Case& c) {
  NetworkFault f;
  const ClosShape shape = clos_shape(c.fabric, c.job.domains() * c.job.domain);
  const bool spines = shape.tiers.size() > 1;
  f.kind = spines && *rc::gen::arbitrary<bool>() ? FaultKind::leaf_spine : FaultKind::nic;
  f.accelerator = *rc::gen::inRange<std::int64_t>(0, c.job.domains()) * c.job.domain;
  f.plane = f.kind == FaultKind::nic ? -1 : 0;
  if (f.kind == FaultKind::leaf_spine) {
    const bool apart = c.fabric.scale_out.kind == ScaleOutKind::rail_only;
    f.spine =
        *rc::gen::inRange<std::int64_t>(0, shape.tiers[1].switches / (apart ? shape.rails : 1));
  }
  f.remaining = 0.1 * *rc::gen::inRange(1, 10);
  return f;
}

Case random_case() {
  Case c{.fabric = load_fabric(*rc::gen::elementOf(small_fabrics())),
         .costs = load_collective_costs(Architecture::hopper)};
  shrink(c.fabric);
  c.job.domain = c.fabric.scale_up.domain;
  c.job.ranks_per_domain = c.job.domain;
  c.job.ranks = c.job.domain * *rc::gen::inRange<std::int64_t>(2, 17);
  const int collectives = *rc::gen::inRange(1, 4);
  for (int i = 0; i < collectives; ++i) c.collectives.push_back(random_collective(c.job));
  if (*rc::gen::arbitrary<bool>()) c.conditions.faults.push_back(random_fault(c));
  return c;
}

// Ends of all collectives, started a little after each other.
std::vector<Completion> timeline(const Case& c, bool folded) {
  FlowNetwork network(c.fabric, c.costs, c.job, c.conditions, {.folded = folded});
  for (std::size_t i = 0; i < c.collectives.size(); ++i)
    network.start(c.collectives[i], Ticks{static_cast<std::int64_t>(i) * 20'000'000});
  std::vector<Completion> ends;
  while (const auto end = network.next_completion()) ends.push_back(*end);
  return ends;
}

TEST_CASE("law 5: folded and unfolded clusters end at the same picosecond", "[flow][law]") {
  REQUIRE(rc::check([] {
    for (int cluster = 0; cluster < 4; ++cluster) {  // 400 in all
      const Case c = random_case();
      const auto folded = timeline(c, true), whole = timeline(c, false);
      RC_ASSERT(folded.size() == c.collectives.size());
      RC_ASSERT(whole.size() == folded.size());
      for (std::size_t i = 0; i < folded.size(); ++i) {
        RC_ASSERT(folded[i].id == whole[i].id);
        RC_ASSERT(folded[i].time == whole[i].time);
      }
    }
  }));
}

// What the alpha-beta model says, to the picosecond of rounding each part.
TEST_CASE("a collective alone on an open fabric takes the alpha-beta time", "[flow][law]") {
  REQUIRE(rc::check([] {
    Case c = random_case();
    c.conditions = {};
    for (Tier& tier : c.fabric.scale_out.tiers) tier.oversubscription.value = 1;
    if (c.fabric.scale_out.routing == Routing::ecmp) c.fabric.scale_out.routing = Routing::spray;
    const Collective& collective = c.collectives.front();
    const Seconds expected = collective_time(collective, c.fabric, c.costs).time;
    const FlowPrice price = flow_price(collective, c.fabric, c.costs, c.job, c.conditions);
    RC_ASSERT(std::abs((price.time.time - expected).si()) < 5e-12 + 1e-8 * expected.si());
    IdealNetwork ideal(c.fabric, c.costs);
    RC_ASSERT(ideal.price(collective).time == expected);
  }));
}

// The ideal network's answer on tapered tiers comes from link loads, the flow network's from
// max-min shares over time: on one block of groups they are one number.
TEST_CASE("a tapered fabric costs the ideal and the flow network the same", "[flow][law]") {
  int stretched = 0;
  const bool holds = rc::check([&] {
    Case c = random_case();
    c.conditions = {};
    if (c.fabric.scale_out.routing == Routing::ecmp) c.fabric.scale_out.routing = Routing::spray;
    Collective& collective = c.collectives.front();
    const std::int64_t block = collective.group.domains * collective.group.domain_step;
    c.job.ranks = block * c.job.ranks_per_domain;
    RC_PRE(collective.group.domains > 1);
    const CollectiveTime alone = collective_time(collective, c.fabric, c.costs);
    const FlowPrice price = flow_price(collective, c.fabric, c.costs, c.job, {});
    RC_LOG() << c.fabric.name << " " << to_text(alone.algorithm) << " " << collective.group.domains
             << " x " << collective.group.domain_step;
    RC_ASSERT(price.time.time >= price.undisturbed - Seconds(5e-12));
    if (alone.algorithm != CollectiveAlgorithm::pat)
      RC_ASSERT(std::abs(price.time.time / price.undisturbed - 1) < 1e-6);
    stretched += price.undisturbed > alone.time * 1.01;
  });
  REQUIRE(holds);
  CHECK(stretched > 0);  // about one case in eight
}

// What repeats is left out; time and bytes of every layer are those of the whole job.
TEST_CASE("a shortened job takes what the whole one takes", "[flow][law]") {
  int shortened = 0;
  const bool holds = rc::check([&] {
    Case c = random_case();
    if (c.fabric.scale_out.routing == Routing::ecmp) c.fabric.scale_out.routing = Routing::spray;
    c.job.ranks = c.job.domain * *rc::gen::inRange<std::int64_t>(2, 200);
    const auto domains = c.job.domains();
    Collective& collective = c.collectives.front();
    const auto step = *rc::gen::inRange<std::int64_t>(1, 5);
    if (*rc::gen::arbitrary<bool>()) {
      collective.kind = *rc::gen::element(Kind::all_gather, Kind::send_receive);
      collective.group.domain_step = domains % step == 0 ? step : 1;
      collective.group.domains =
          collective.kind == Kind::send_receive ? 2 : domains / collective.group.domain_step;
    }
    const auto alone = collective_time(collective, c.fabric, c.costs);
    const auto small =
        shorten(collective, alone.algorithm, clos_shape(c.fabric, domains * c.job.domain), c.job);
    RC_PRE(small.has_value());
    ++shortened;
    const FlowPrice brief = flow_price(collective, c.fabric, c.costs, c.job, {});
    Conditions whole;  // a fault that takes nothing keeps the job from being shortened
    whole.slow_gpus = {{.gpu = 0, .speed = 1}};
    const FlowPrice full = flow_price(collective, c.fabric, c.costs, c.job, whole);
    RC_LOG() << c.fabric.name << " " << domains << " domains, step " << collective.group.domain_step
             << ", to " << small->job.domains();
    RC_ASSERT(brief.time.time == full.time.time);
    for (std::size_t i = 0; i < full.bytes.size(); ++i)
      RC_ASSERT(std::abs(brief.bytes[i] - full.bytes[i]) <= 1e-9 * full.bytes[i]);
  });
  REQUIRE(holds);
  CHECK(shortened > 20);
}

// Law 1: what a collective must move is what crosses the NICs.
TEST_CASE("law 1: bytes of a collective cross the network once", "[flow][law]") {
  REQUIRE(rc::check([] {
    Case c = random_case();
    const Collective& collective = c.collectives.front();
    RC_PRE(collective.group.domains > 1);
    const FlowPrice price = flow_price(collective, c.fabric, c.costs, c.job, c.conditions);
    double moved = 0, expected = 0;
    for (std::size_t layer = 1; layer < price.bytes.size(); ++layer) moved += price.bytes[layer];
    const double rank = price.time.scale_out_bytes.si();
    for (const DomainEdge& e :
         domain_edges(collective.kind, price.time.algorithm, collective.group, c.job.domains()))
      expected += e.share * rank * static_cast<double>(c.job.ranks_per_domain);
    if (price.time.algorithm != CollectiveAlgorithm::collnet)
      RC_ASSERT(std::abs(moved - expected) <= 1e-6 * expected);
  }));
}

// Eight rings over the same rails of sixteen DGX H100.
struct Boxes {
  Fabric fabric = load_fabric("nvlink4-ndr");
  CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  JobGround job{.ranks = 128, .ranks_per_domain = 8, .domain = 8};
  Collective gather{
      .kind = Kind::all_gather,
      .group = {.size = 16, .per_domain = 1, .domains = 16, .span = 128, .sharing = 8},
      .bytes = Bytes(1e9)};
};
Boxes sixteen_boxes() { return {}; }

TEST_CASE("other traffic takes its share and gives it back", "[flow]") {
  const auto [fabric, costs, job, gather] = sixteen_boxes();
  const FlowPrice quiet = flow_price(gather, fabric, costs, job, {});
  Conditions busy;
  busy.background = {{.pattern = BackgroundTraffic::Pattern::all_to_all, .gpus = 128, .load = 1}};
  const FlowPrice shared = flow_price(gather, fabric, costs, job, busy);
  // Fifteen background flows leave every NIC beside the ring's one: max-min shares are per flow.
  CHECK(shared.time.transfer / quiet.time.transfer > 8);
  busy.background[0].load = 0.01;
  const FlowPrice barely = flow_price(gather, fabric, costs, job, busy);
  CHECK(barely.time.transfer / quiet.time.transfer < 1.05);
}

TEST_CASE("a fault slows the groups of its own stage", "[flow]") {
  const Fabric fabric = load_fabric("nvlink4-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  const JobGround job{.ranks = 128, .ranks_per_domain = 8, .domain = 8, .stages = 4};
  const Collective gather{
      .kind = Kind::all_gather,
      .group = {.size = 4, .per_domain = 1, .domains = 4, .span = 32, .sharing = 8},
      .bytes = Bytes(1e9)};
  const Conditions broken{
      .faults = {{.kind = FaultKind::nic, .accelerator = 40, .plane = -1, .remaining = 0.25}}};
  const FlowPrice slow = flow_price(gather, fabric, costs, job, broken);
  const Seconds alone = collective_time(gather, fabric, costs).time;
  REQUIRE(slow.by_stage.size() == 4);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    INFO("stage " << stage);
    if (stage == 1)  // domains 4 to 7 hold accelerators 32 to 63
      CHECK(slow.by_stage[stage].time > alone * 2);
    else
      CHECK(slow.by_stage[stage].time.si() == Approx(alone.si()).epsilon(1e-6));
  }
  CHECK(slow.time.time == slow.by_stage[1].time);
}

TEST_CASE("a small message does not wait for bulk", "[flow]") {
  const Fabric fabric = load_fabric("nvlink4-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  const JobGround job{.ranks = 64, .ranks_per_domain = 8, .domain = 8};
  const GroupShape group{.size = 8, .per_domain = 1, .domains = 8, .span = 64, .sharing = 8};
  const Collective small{.kind = Kind::all_gather, .group = group, .bytes = Bytes(4096)};
  const Collective bulk{.kind = Kind::all_gather, .group = group, .bytes = Bytes(1e9)};
  FlowNetwork network(fabric, costs, job, {});
  const auto large = network.start(bulk, {});
  const auto first = network.start(small, {});
  const auto end = network.next_completion();
  REQUIRE(end->id == first);
  const CollectiveTime alone = collective_time(small, fabric, costs);
  REQUIRE(alone.protocol == CollectiveProtocol::ll);
  CHECK(to_seconds(end->time).si() == Approx(alone.time.si()).epsilon(1e-6));
  CHECK(network.next_completion()->id == large);
}

TEST_CASE("an all-to-all waits for its busiest receiver", "[collectives]") {
  const Fabric fabric = load_fabric("nvlink4-ndr");
  const CollectiveCosts costs = load_collective_costs(Architecture::hopper);
  Collective even{.kind = Kind::all_to_all,
                  .group = {.size = 64, .per_domain = 8, .domains = 8, .span = 64},
                  .bytes = Bytes(1e8)};
  Collective skewed = even;
  skewed.skew = 1.5;
  const CollectiveTime a = collective_time(even, fabric, costs);
  const CollectiveTime b = collective_time(skewed, fabric, costs);
  CHECK(b.transfer.si() == Approx(1.5 * a.transfer.si()));
  CHECK((b.time - b.transfer).si() == Approx((a.time - a.transfer).si()));
}

TEST_CASE("a broken NIC slows its ring to what it has left", "[flow]") {
  const auto [fabric, costs, job, gather] = sixteen_boxes();
  const FlowPrice healthy = flow_price(gather, fabric, costs, job, {});
  Conditions broken;
  broken.faults = {{.kind = FaultKind::nic, .accelerator = 40, .plane = -1, .remaining = 0.25}};
  const FlowPrice slow = flow_price(gather, fabric, costs, job, broken);
  const double nic = 0.25 * 50e9 * fabric.scale_out.efficiency.get();
  const double bytes = healthy.time.scale_out_bytes.si();
  CHECK(slow.time.transfer.si() == Approx(bytes / nic).epsilon(1e-6));
  CHECK(slow.busiest.front().load == Approx(1).epsilon(1e-6));
  CHECK_THROWS_AS(flow_price(gather, fabric, costs, job,
                             {.faults = {{.kind = FaultKind::nic, .accelerator = 1 << 20}}}),
                  Error);
}

}  // namespace
}  // namespace orrery
