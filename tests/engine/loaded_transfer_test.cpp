// SPDX-License-Identifier: Apache-2.0
// Holds the ideal network's view of tapered and hashed fabrics to what a pencil says.
#include "sim/engine/network/loaded_transfer.h"

#include <catch2/catch.hpp>

#include "sim/engine/cluster.h"

namespace orrery {
namespace {

// Leaves of two boxes of eight and spines above, `taper` to one, no other tier.
struct Rig {
  Cluster cluster = load_cluster("h100-spectrum-x", 64);
  Fabric fabric = cluster.fabric;

  Rig(double taper, Routing routing) {
    ScaleOut& out = fabric.scale_out;
    out.kind = ScaleOutKind::fat_tree;
    out.rails = 1;
    out.planes = 1;
    out.routing = routing;
    out.tiers.resize(2);
    out.tiers[0].reach = 16;
    out.tiers[0].radix = 64;
    out.tiers[0].oversubscription.value = taper;
    out.tiers[0].uplink_bandwidth = {};
    out.tiers[1].reach = 0;
    out.tiers[1].radix = 64;
    out.tiers[1].oversubscription.value = 1;
  }
  CollectiveTime alone(const Collective& c) const {
    return collective_time(c, fabric, cluster.collective_costs);
  }
  double stretch(const Collective& c) const {
    const CollectiveTime t = alone(c);
    return loaded_transfer(c, t, fabric) / t.transfer;
  }
  // Of a NIC's rate that the collective asks for by itself.
  double asked(const Collective& c) const {
    const CollectiveTime t = alone(c);
    return (t.scale_out_bytes / t.transfer).si() /
           (fabric.scale_out.nic_bandwidth.get().si() * fabric.scale_out.efficiency.get());
  }
};

Collective of(CollectiveKind kind, std::int64_t domains) {
  return {.kind = kind,
          .group = {.size = domains, .domains = domains, .span = domains * 8, .sharing = 8},
          .bytes = Bytes(1e9)};
}

}  // namespace

TEST_CASE("fabrics that neither taper nor hash add nothing") {
  const Rig rig(1, Routing::spray);
  CHECK(rig.stretch(of(CollectiveKind::all_gather, 8)) == 1);
  CHECK(rig.stretch(of(CollectiveKind::all_to_all, 8)) == 1);
}

TEST_CASE("a ring loads a tapered leaf's links with one box of two, so a taper of two is free") {
  const Collective ring = of(CollectiveKind::all_gather, 8);
  CHECK(Rig(2, Routing::spray).stretch(ring) == Approx(1));
  const Rig four(4, Routing::spray);
  CHECK(four.stretch(ring) == Approx(4.0 / 2 * four.asked(ring)));
  CHECK(four.stretch(of(CollectiveKind::all_gather, 2)) == 1);  // under one leaf
}

TEST_CASE("an all-to-all of eight boxes sends six parts of seven over a tapered leaf") {
  const Collective exchange = of(CollectiveKind::all_to_all, 8);
  for (const double taper : {2.0, 4.0}) {
    const Rig rig(taper, Routing::spray);
    INFO("taper " << taper);
    CHECK(rig.stretch(exchange) == Approx(std::max(1.0, taper * 6 / 7 * rig.asked(exchange))));
  }
}

TEST_CASE("hashing costs a ring more among more leaves, an all-to-all less among more peers") {
  double ring_before = 1, exchange_before = 2;
  for (const std::int64_t domains : {4, 8, 16, 32, 64}) {
    const Rig rig(1, Routing::ecmp);
    INFO(domains << " domains");
    const double ring = rig.stretch(of(CollectiveKind::all_gather, domains));
    const double exchange = rig.stretch(of(CollectiveKind::all_to_all, domains));
    // The worst of more leaves is worse; more and smaller flows on a link spread better.
    CHECK(ring >= ring_before);
    CHECK(exchange <= exchange_before);
    CHECK(exchange >= 1);
    ring_before = ring;
    exchange_before = exchange;
  }
  CHECK(ring_before > 1.3);
  const Collective ring = of(CollectiveKind::all_gather, 16);
  CHECK(Rig(4, Routing::ecmp).stretch(ring) >= Rig(1, Routing::ecmp).stretch(ring));
}

TEST_CASE("remembered answers are the answers, for any size of message") {
  const Rig rig(4, Routing::spray);
  LoadedTransfers known;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::all_to_all})
    for (const std::int64_t domains : {4, 8, 16})
      for (const double bytes : {1e8, 1e9, 1e9}) {
        Collective c = of(kind, domains);
        c.bytes = Bytes(bytes);
        const CollectiveTime t = rig.alone(c);
        CHECK(known.of(c, t, rig.fabric).si() ==
              Approx(loaded_transfer(c, t, rig.fabric).si()).epsilon(1e-12));
      }
}

}  // namespace orrery
