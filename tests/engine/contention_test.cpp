// SPDX-License-Identifier: Apache-2.0
// Holds two streams on one network to what a pencil says: halves where they meet, nothing
// elsewhere.
#include "sim/engine/network/contention.h"

#include <rapidcheck.h>

#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/engine/cluster.h"

namespace orrery {
namespace {

// Four boxes of eight; each of eight groups has a rank in every box, so a rank has its NIC alone
// and fills it.
struct Rig {
  Cluster cluster = load_cluster("dgx-h100", 32);
  FlowNetwork network{cluster.fabric, cluster.collective_costs,
                      JobGround{.ranks = 32, .ranks_per_domain = 8, .domain = 8}, Conditions{}};

  Collective across(double bytes) const {
    return {.kind = CollectiveKind::all_gather,
            .group = {.size = 4, .domains = 4, .span = 32, .sharing = 8},
            .bytes = Bytes(bytes)};
  }
  Collective inside(double bytes) const {
    return {.kind = CollectiveKind::all_gather,
            .group = {.size = 8, .per_domain = 8, .span = 8},
            .bytes = Bytes(bytes)};
  }
  CollectiveTime time(const Collective& c) { return network.price(c); }
  double nic() const {
    return cluster.fabric.scale_out.nic_bandwidth.get().si() *
           cluster.fabric.scale_out.efficiency.get();
  }
};

void check_time(Seconds found, double expected) {
  CHECK(found.si() == Approx(expected).epsilon(1e-9).margin(1e-11));
}

}  // namespace

TEST_CASE("a stream alone takes its computes and its collectives one after the other") {
  Rig rig;
  const Collective c = rig.across(1e9);
  const double t = rig.time(c).time.si();
  const StreamItem main[] = {{.compute = Seconds(3e-3), .collective = c},
                             {.compute = Seconds(2e-3), .collective = c},
                             {.compute = Seconds(1e-3), .collective = std::nullopt}};
  const TwoStreams run = run_streams(main, {}, rig.network);
  check_time(run.main, 6e-3 + 2 * t);
  check_time(run.main_alone, 6e-3 + 2 * t);
  CHECK(run.side == Seconds(0));
  CHECK(run.main_delay().si() < 1e-11);
}

TEST_CASE("two equal streams that fill a NIC each take twice as long to move") {
  Rig rig;
  const Collective c = rig.across(1e9);
  const CollectiveTime t = rig.time(c);
  REQUIRE((t.scale_out_bytes / t.transfer).si() > 0.98 * rig.nic());
  const double rate = (t.scale_out_bytes / t.transfer).si() / rig.nic();  // 1: fills it
  const StreamItem one[] = {{.collective = c}};
  const TwoStreams run = run_streams(one, one, rig.network);
  check_time(run.main, t.time.si() + (2 * rate - 1) * t.transfer.si());
  check_time(run.side, run.main.si());
}

TEST_CASE("a late start shares only what is left, the NIC is never idle, later runs are alike") {
  Rig rig;
  const Collective c = rig.across(1e9);
  const CollectiveTime t = rig.time(c);
  const double rate = (t.scale_out_bytes / t.transfer).si() / rig.nic();
  const double x = t.transfer.si();
  const StreamItem late[] = {{.compute = Seconds(x / 2), .collective = c}};
  const StreamItem side[] = {{.collective = c}};
  for (int again = 0; again < 3; ++again) {
    const TwoStreams run = run_streams(late, side, rig.network);
    // Half of the side is left when both share; then the other half of the main moves alone.
    check_time(run.side, t.time.si() + x / 2 * (2 * rate - 1));
    check_time(run.main, t.time.si() + x / 2 * (2 * rate - 1) + x / 2);
    check_time(run.main_delay(), x / 2 * (2 * rate - 1));
  }
}

TEST_CASE("streams that never meet on a wire cost each other nothing") {
  Rig rig;
  const Collective c = rig.across(1e9);
  const StreamItem side[] = {{.collective = c}};
  const StreamItem after[] = {{.compute = rig.time(c).time * 1.001, .collective = c}};
  const TwoStreams apart = run_streams(after, side, rig.network);
  CHECK(apart.main_delay().si() < 1e-11);
  CHECK(apart.side_delay().si() < 1e-11);
  const StreamItem compute[] = {{.compute = Seconds(1), .collective = std::nullopt}};
  CHECK(run_streams(compute, side, rig.network).side_delay().si() < 1e-11);
}

TEST_CASE("inside a domain two streams share a port only as far as they want more than it has") {
  Rig rig;
  const Collective c = rig.inside(1e9);
  const CollectiveTime t = rig.time(c);
  const double port = rig.cluster.fabric.scale_up.bandwidth.get().si();
  const double wanted = 2 * (t.scale_up_bytes / t.transfer).si() / port;
  REQUIRE(wanted > 1);
  const StreamItem one[] = {{.collective = c}};
  const TwoStreams run = run_streams(one, one, rig.network);
  check_time(run.main_delay(), t.transfer.si() * (wanted - 1));
}

TEST_CASE("a flow goes on with what it has left each time that new collectives come") {
  CHECK(rc::check([] {
    Rig rig;
    std::vector<StreamItem> main, side{{.collective = rig.inside(4e9)}};
    const int count = *rc::gen::inRange(2, 6);
    for (int i = 0; i < count; ++i) {  // shapes that the network has not met
      Collective c = rig.inside(1e6 * *rc::gen::inRange(1, 200));
      c.group.size = c.group.per_domain = c.group.span = 1 << *rc::gen::inRange(1, 4);
      c.kind = *rc::gen::element(CollectiveKind::all_gather, CollectiveKind::all_to_all,
                                 CollectiveKind::all_reduce);
      main.push_back({.compute = Seconds(1e-4), .collective = c});
    }
    const TwoStreams fresh = run_streams(main, side, rig.network);
    const TwoStreams known = run_streams(main, side, rig.network);
    const Seconds rounding(1e-10);
    RC_ASSERT(fresh.side <= known.side + rounding);
    RC_ASSERT(fresh.side >= known.side - rounding);
    RC_ASSERT(fresh.main <= known.main + rounding);
    RC_ASSERT(fresh.main >= known.main - rounding);
  }));
}

TEST_CASE("the later of two streams ends no earlier than either alone, nor after both in turn") {
  Rig rig;
  CHECK(rc::check([&] {
    const auto stream = [&] {
      std::vector<StreamItem> items;
      const int count = *rc::gen::inRange(1, 5);
      for (int i = 0; i < count; ++i) {
        const double bytes = 1e6 * *rc::gen::inRange(1, 400);
        items.push_back(
            {.compute = Seconds(1e-5 * *rc::gen::inRange(0, 500)),
             .collective = *rc::gen::arbitrary<bool>() ? rig.across(bytes) : rig.inside(bytes)});
      }
      return items;
    };
    const auto main = stream(), side = stream();
    const TwoStreams run = run_streams(main, side, rig.network);
    const Seconds rounding(1e-10);
    RC_ASSERT(run.main >= run.main_alone - rounding);
    RC_ASSERT(run.side >= run.side_alone - rounding);
    RC_ASSERT(std::max(run.main, run.side) <= run.main_alone + run.side_alone + rounding);
  }));
}

// Folded, links that never fill are left out, and alike flows run as one.
TEST_CASE("law: streams of hashed flows take what they take flow by flow, to the picosecond") {
  CHECK(rc::check([] {
    Cluster cluster = load_cluster("h100-roce", 1024);
    cluster.fabric.scale_out.paths_per_flow = *rc::gen::element(1, 2, 16);
    const Conditions conditions{.seed = *rc::gen::inRange<std::uint64_t>(1, 1000)};
    JobGround job{.ranks = 64, .ranks_per_domain = 8, .domain = 8};
    if (*rc::gen::arbitrary<bool>()) {
      job.domain_at =
          *rc::gen::unique<std::vector<std::int64_t>>(8, rc::gen::inRange<std::int64_t>(0, 128));
      std::sort(job.domain_at.begin(), job.domain_at.end());
      job.cluster = 1024;
    }
    const auto item = [](CollectiveKind kind, std::int64_t domains, std::int64_t step) {
      const double bytes = *rc::gen::element(1e8, 3e8, 1e9);
      GroupShape group{.size = domains * 8, .per_domain = 8, .domains = domains, .span = 64};
      group.domain_step = step;
      return StreamItem{
          .compute = Seconds(*rc::gen::element(0.0, 1e-3, 5e-3)),
          .collective = Collective{.kind = kind, .group = group, .bytes = Bytes(bytes)}};
    };
    const std::vector<StreamItem> main = {item(CollectiveKind::all_to_all, 4, 1),
                                          item(CollectiveKind::all_to_all, 4, 1),
                                          item(CollectiveKind::all_to_all, 8, 1)};
    const std::vector<StreamItem> side = {item(CollectiveKind::reduce_scatter, 4, 2),
                                          item(CollectiveKind::all_reduce, 8, 1)};
    const auto streams = [&](bool folded) {
      FlowNetwork network(cluster.fabric, cluster.collective_costs, job, conditions,
                          {.folded = folded});
      run_streams(main, side, network);
      return run_streams(side, main, network);
    };
    const TwoStreams a = streams(true), b = streams(false);
    RC_ASSERT(a.main == b.main);
    RC_ASSERT(a.side == b.side);
    RC_ASSERT(a.main_alone == b.main_alone);
    RC_ASSERT(a.side_alone == b.side_alone);
  }));
}

}  // namespace orrery
