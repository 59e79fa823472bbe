// SPDX-License-Identifier: Apache-2.0
// Knows what faults do to routes, by hand: shares follow what is left, and errors name the fault.
#include <catch2/catch.hpp>
#include <map>

#include "tests/topologies/random_fabric.h"
#include "topologies/routing/routing.h"

namespace orrery {
namespace {

std::vector<RouteLink> route(const Router& router, std::int64_t a, std::int64_t b) {
  std::vector<RouteLink> out;
  router.route(a, b, 0, out);
  return out;
}

// Share of one link by number of the switch above, over links of a kind between leaf and spine.
std::map<std::int32_t, double> by_spine(const Router& router, LinkKind kind, std::int64_t a,
                                        std::int64_t b) {
  std::map<std::int32_t, double> shares;
  for (const RouteLink& l : route(router, a, b))
    if (l.link.kind == kind && l.link.tier == 0) shares[l.link.upper] += l.share;
  return shares;
}

std::string error_of(const Fabric& fabric, const ClosShape& shape,
                     const std::vector<NetworkFault>& faults) {
  try {
    Router(fabric, shape, {}, faults);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST_CASE("a failed link moves its share to the others, in proportion", "[routing]") {
  const Fabric fabric = small_fabric();
  const NetworkFault failed{.kind = FaultKind::leaf_spine, .leaf = 1, .spine = 2, .parallel = -1};
  const Router router(fabric, small_shape(), {.bundled = true}, {&failed, 1});
  // Spines {0, 1, 3} are one bundle of two parallel links each; spine 2 has nothing for leaf 1.
  const auto up = by_spine(router, LinkKind::up, 8, 30);
  CHECK(up == std::map<std::int32_t, double>{{0, exact_share(1.0 / 6)}});
  CHECK(router.size({.kind = LinkKind::up, .group = 1, .upper = 0}).links == 6);
  CHECK(router.size({.kind = LinkKind::up, .group = 1, .upper = 2}).capacity == 0);
  // Others keep their shares; only their bundle is split.
  const auto other = by_spine(router, LinkKind::up, 16, 30);
  CHECK(other == std::map<std::int32_t, double>{{0, 0.125}, {2, 0.125}});
  CHECK(by_spine(router, LinkKind::down, 16, 8).contains(2) == false);
}

TEST_CASE("a slow cable takes what is left of it, up and down", "[routing]") {
  const Fabric fabric = small_fabric();
  const NetworkFault slow{
      .kind = FaultKind::leaf_spine, .leaf = 1, .spine = 2, .remaining = 0.5, .parallel = 1};
  const Router router(fabric, small_shape(), {.bundled = false}, {&slow, 1});
  // Spine 2 keeps three quarters of its two links: weights 1, 1, 0.75, 1.
  for (const RouteLink& l : route(router, 8, 30)) {
    if (l.link.kind != LinkKind::up) continue;
    const double spine = l.link.upper == 2 ? 0.75 / 3.75 : 1 / 3.75;
    const double lane = l.link.upper != 2 ? 0.5 : l.link.parallel == 1 ? 1.0 / 3 : 2.0 / 3;
    CHECK(l.share == Approx(spine * lane));
    CHECK(router.size(l.link).capacity == (l.link.upper == 2 && l.link.parallel == 1 ? 50 : 100));
  }
  // Traffic that goes down the slow cable steers around it as far as it must.
  const auto there = by_spine(router, LinkKind::up, 30, 8);
  CHECK(there.at(2) == Approx(0.2));
  CHECK(there.at(0) == Approx(0.8 / 3));
}

TEST_CASE("planes take what their ports and their network leave", "[routing]") {
  const Fabric fabric = small_fabric();
  const std::vector<NetworkFault> faults = {
      {.kind = FaultKind::plane, .plane = 1, .remaining = 0.5},
      {.kind = FaultKind::nic, .accelerator = 8, .plane = 2, .remaining = 0},
      {.kind = FaultKind::spine, .spine = 0, .plane = 3, .remaining = 0}};
  const Router router(fabric, small_shape(4), {.bundled = true}, faults);
  std::map<int, double> nic;
  for (const RouteLink& l : route(router, 0, 30))
    if (l.link.kind == LinkKind::nic_out) nic[l.link.plane] = l.share;
  CHECK(nic[0] == Approx(1 / 3.25));
  CHECK(nic[1] == Approx(0.5 / 3.25));
  CHECK(nic[2] == Approx(1 / 3.25));
  CHECK(nic[3] == Approx(0.75 / 3.25));
  // Under one leaf the failed spine does not count; into accelerator 8 nothing goes by plane 2.
  nic.clear();
  for (const RouteLink& l : route(router, 10, 8))
    if (l.link.kind == LinkKind::nic_in) nic[l.link.plane] = l.share;
  CHECK(nic.size() == 3);
  CHECK(nic[0] == Approx(0.4));
  CHECK(nic[1] == Approx(0.2));
  CHECK(nic[3] == Approx(0.4));
}

TEST_CASE("faults that the fabric does not have, or that cut it, are errors", "[routing]") {
  const Fabric fabric = small_fabric();
  const ClosShape one = small_shape(), two = small_shape(2);
  const NetworkFault fine{.kind = FaultKind::leaf_spine, .leaf = 7, .spine = 3};
  CHECK(error_of(fabric, one, {fine}).empty());
  CHECK(error_of(fabric, one, {fine, {.kind = FaultKind::leaf, .leaf = 8}}) ==
        "small: faults[1]: found leaf 8; expected 0 to 7");
  CHECK(error_of(fabric, one, {{.kind = FaultKind::spine_core}}) ==
        "small: faults[0]: found core 0; expected no such fault: the fabric has no such tier");
  CHECK(error_of(fabric, one, {{.kind = FaultKind::nic, .remaining = 1.5}}) ==
        "small: faults[0]: found remaining 1.5; expected a share of the rate, 0 to 1");
  for (const FaultKind kind : {FaultKind::nic, FaultKind::leaf, FaultKind::plane}) {
    INFO(static_cast<int>(kind));
    const NetworkFault cut{.kind = kind, .accelerator = 5, .leaf = 3};
    CHECK(error_of(fabric, one, {fine, cut}).find("faults[1]: found no path from") !=
          std::string::npos);
    CHECK(error_of(fabric, two, {fine, cut}).empty());
  }
  // Leaf 0 keeps spine 0 in plane 0, leaf 1 spine 1: each has a path to others, not to each other.
  std::vector<NetworkFault> faults;
  for (std::int64_t spine = 0; spine < 4; ++spine)
    for (const std::int64_t leaf : {0, 1})
      if (spine != leaf)
        faults.push_back(
            {.kind = FaultKind::leaf_spine, .leaf = leaf, .spine = spine, .parallel = -1});
  CHECK(error_of(fabric, one, faults).find("no path from accelerator 0 to 8") != std::string::npos);
  CHECK(error_of(fabric, two, faults).empty());
  faults.push_back({.kind = FaultKind::nic, .accelerator = 4, .plane = -1});
  CHECK(error_of(fabric, two, faults).find("faults[6]") != std::string::npos);
}

TEST_CASE("a leaf's fault reaches its NICs, and only its own plane", "[routing]") {
  Fabric fabric = small_fabric();
  fabric.scale_out.planes = 2;
  const NetworkFault fault{.kind = FaultKind::leaf, .leaf = 1, .plane = 1, .remaining = 0.5};
  const Router router(fabric, small_shape(2), {}, {&fault, 1});
  const LinkName nic{.kind = LinkKind::nic_in, .plane = 1, .group = 9};
  CHECK(router.size(nic).capacity == 25);
  CHECK(router.size({.kind = LinkKind::nic_in, .group = 9}).capacity == 50);
  CHECK(router.size({.kind = LinkKind::nic_in, .plane = 1, .group = 0}).capacity == 50);
  for (const RouteLink& l : route(router, 10, 9))
    CHECK(l.share == Approx(l.link.plane == 1 ? 1.0 / 3 : 2.0 / 3));
}

TEST_CASE("pods meet in the cores that both still reach", "[routing]") {
  Fabric fabric = small_fabric();
  fabric.scale_out.tiers.push_back(fabric.scale_out.tiers[1]);
  const ClosShape pods = small_pods();
  // Pod 1 has lost one of two links from spine 1 to core 0, and all to core 1.
  std::vector<NetworkFault> faults = {
      {.kind = FaultKind::spine_core, .spine = 1, .pod = 1, .core = 0},
      {.kind = FaultKind::spine_core, .spine = 1, .pod = 1, .core = 1, .parallel = -1}};
  const Router router(fabric, pods, {}, faults);
  // Spine 1 keeps a quarter of its way to the other pod, spine 0 all of it.
  std::map<std::int32_t, double> up;
  for (const RouteLink& l : route(router, 0, 40)) {
    if (l.link.kind == LinkKind::up && l.link.tier == 0) up[l.link.upper] = l.share;
    if (l.link.tier == 1 && l.link.lower == 1) {
      CHECK(l.link.upper == 0);
      if (l.link.kind == LinkKind::down) CHECK(l.link.parallel == 1);
    }
  }
  CHECK(up[0] == Approx(0.8 / 4));
  CHECK(up[1] == Approx(0.2 / 4));
  // Inside a pod cores do not count.
  CHECK(by_spine(router, LinkKind::up, 40, 48).at(1) == 0.125);
  const RoutingOptions ecmp{.routing = Routing::ecmp, .paths_per_flow = 64};
  const Router hashed(fabric, pods, ecmp, faults);
  for (const RouteLink& l : route(hashed, 0, 40))
    if (l.link.tier == 1 && l.link.lower == 1) CHECK(l.link.upper == 0);

  faults.push_back({.kind = FaultKind::spine_core, .pod = 1, .core = 0, .parallel = -1});
  faults.push_back({.kind = FaultKind::spine_core, .pod = 1, .core = 1, .parallel = -1});
  CHECK(error_of(fabric, pods, faults).empty());
  faults.push_back({.kind = FaultKind::spine, .spine = 1, .pod = 0});
  CHECK(error_of(fabric, pods, faults).find("faults[4]: found no path") != std::string::npos);
  faults = {{.kind = FaultKind::spine_core, .spine = 0, .pod = 1, .core = 0, .parallel = -1},
            {.kind = FaultKind::spine_core, .spine = 0, .pod = 1, .core = 1, .parallel = -1},
            {.kind = FaultKind::spine_core, .spine = 1, .pod = 1, .core = 0, .parallel = -1}};
  CHECK(error_of(fabric, pods, faults).empty());
  faults.push_back(
      {.kind = FaultKind::spine_core, .spine = 1, .pod = 1, .core = 1, .parallel = -1});
  CHECK(error_of(fabric, pods, faults).find("faults[3]: found no path") != std::string::npos);
}

TEST_CASE("positions differ by what a fault names, and by what they share", "[routing]") {
  using Classes = std::vector<int>;
  Fabric fabric = small_fabric(ScaleOutKind::rail_optimised);
  fabric.scale_up.domain = 4;
  ClosShape shape = small_shape();
  shape.rails = 2;
  shape.tiers[0].switches = 2;
  CHECK(Router(fabric, shape, {}).position_classes(4) == Classes{0, 0, 0, 0});
  CHECK(Router(fabric, shape, {}).position_classes(3) == Classes{0, 1, 0});
  NetworkFault fault{.kind = FaultKind::leaf_spine, .leaf = 5, .spine = 1};
  CHECK(Router(fabric, shape, {}, {&fault, 1}).position_classes(4) == Classes{0, 1, 0, 1});
  fault = {.kind = FaultKind::nic, .accelerator = 22, .remaining = 0.5};
  CHECK(Router(fabric, shape, {}, {&fault, 1}).position_classes(4) == Classes{0, 0, 1, 0});
  fault = {.kind = FaultKind::spine, .spine = 1};
  CHECK(Router(fabric, shape, {}, {&fault, 1}).position_classes(4) == Classes{0, 0, 0, 0});
  const RoutingOptions ecmp{.routing = Routing::ecmp};
  CHECK(Router(fabric, shape, ecmp).position_classes(4) == Classes{0, 1, 2, 3});
  shape.tiers[0].reach = 6;  // groups that end inside a domain
  CHECK(Router(fabric, shape, {}).position_classes(2) == Classes{0, 1});
}

TEST_CASE("rails of a rail-only fabric do not meet", "[routing]") {
  Fabric fabric = small_fabric(ScaleOutKind::rail_only);
  ClosShape shape = small_shape();
  shape.rails = shape.tiers[0].switches = 2;
  shape.tiers[1].switches = 8;
  const Router router(fabric, shape, {});
  CHECK_THROWS_AS(route(router, 0, 9), Error);
  CHECK(by_spine(router, LinkKind::up, 1, 9) == std::map<std::int32_t, double>{{4, 0.125}});
  CHECK(by_spine(router, LinkKind::up, 0, 8) == std::map<std::int32_t, double>{{0, 0.125}});
  // Rails are checked for paths one by one.
  CHECK(error_of(fabric, shape,
                 {{.kind = FaultKind::leaf, .leaf = 3, .remaining = 0.5},
                  {.kind = FaultKind::spine, .spine = 0},
                  {.kind = FaultKind::spine, .spine = 1},
                  {.kind = FaultKind::spine, .spine = 2},
                  {.kind = FaultKind::spine, .spine = 7}})
            .empty());
  const NetworkFault fault{.kind = FaultKind::spine, .spine = 6};
  CHECK(Router(fabric, shape, {}, {&fault, 1}).position_classes(2) == std::vector<int>{0, 1});
}

}  // namespace
}  // namespace orrery
