// SPDX-License-Identifier: Apache-2.0
// Knows how tests make fabrics, faults and flows at random: small, of every kind.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "topologies/routing/routing.h"

namespace orrery {

template <class T>
Sourced<T> given(T value) {
  return {.value = value, .evidence = Evidence::specified, .source = "test"};
}

// Two tiers of eight leaves under four spines, eight accelerators a leaf, 100 B/s links: what the
// hand-written cases start from.
inline Fabric small_fabric(ScaleOutKind kind = ScaleOutKind::fat_tree) {
  Fabric fabric;
  fabric.name = "small";
  fabric.scale_up.domain = 2;
  ScaleOut& out = fabric.scale_out;
  out.kind = kind;
  out.nics_per_accelerator = given(1.0);
  out.nic_bandwidth = given(BytesPerSecond(100));
  out.nic_latency = given(Seconds(1e-6));
  out.efficiency = given(1.0);
  for (const std::int64_t reach : {8, 0})
    out.tiers.push_back(
        {.reach = reach, .oversubscription = given(1.0), .latency = given(Seconds(1e-6))});
  return fabric;
}

inline ClosShape small_shape(std::int64_t planes = 1, std::int64_t spines = 4) {
  ClosShape shape{.accelerators = 64, .planes = planes};
  shape.tiers = {
      {.reach = 8, .groups = 8, .switches = 1, .down = 8, .up = 8, .parallel = 8 / spines},
      {.reach = 64, .groups = 1, .switches = spines, .down = 64 / spines}};
  return shape;
}

// Two pods of four leaves and two spines; a spine has two links to each of two cores.
inline ClosShape small_pods() {
  ClosShape shape = small_shape(1, 2);
  shape.tiers[1] = {.reach = 32, .groups = 2, .switches = 2, .down = 16, .up = 4, .parallel = 2};
  shape.tiers.push_back({.reach = 64, .groups = 1, .switches = 4, .down = 4});
  return shape;
}

inline Fabric random_fabric() {
  using Kind = ScaleOutKind;
  Fabric fabric = small_fabric(*rc::gen::element(Kind::fat_tree, Kind::rail_optimised,
                                                 Kind::rail_only, Kind::dragonfly_plus));
  fabric.scale_up.domain = *rc::gen::element<std::int64_t>(1, 2, 4, 6);
  ScaleOut& out = fabric.scale_out;
  out.planes = *rc::gen::inRange<std::int64_t>(1, 4);
  const double nics =
      fabric.scale_up.domain == 1 ? 1 : *rc::gen::element<double>(0.5, 1.0, 1.0, 2.0);
  out.nics_per_accelerator = given(nics);
  if (out.kind == Kind::rail_optimised || out.kind == Kind::rail_only)
    out.rails = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(fabric.scale_up.domain) *
                                     std::min(1.0, nics)) /
               *rc::gen::element<std::int64_t>(1, 1, 2));
  out.tiers.clear();
  std::int64_t reach = fabric.scale_up.domain;
  const std::int64_t tiers = out.kind == Kind::dragonfly_plus ? 3 : *rc::gen::inRange(1, 4);
  if (tiers == 1 && out.kind == Kind::rail_optimised) out.rails = 1;
  const std::int64_t radix = *rc::gen::element<std::int64_t>(0, 0, 12, 16);
  for (std::int64_t t = 0; t < tiers; ++t) {
    reach *= *rc::gen::inRange<std::int64_t>(2, 5);
    out.tiers.push_back({.reach = t + 1 < tiers ? reach : 0,
                         .radix = radix,
                         .oversubscription = given(*rc::gen::element(1.0, 1.0, 2.0)),
                         .latency = given(Seconds(1e-6))});
  }
  out.routing = *rc::gen::element(Routing::adaptive, Routing::spray);
  out.paths_per_flow = *rc::gen::inRange<std::int64_t>(1, 5);
  return fabric;
}

// Two accelerators of different domains that the fabric joins. At least two domains.
inline std::pair<std::int64_t, std::int64_t> random_pair(const Fabric& fabric,
                                                         std::int64_t accelerators) {
  const std::int64_t domain = fabric.scale_up.domain;
  const std::int64_t domains = accelerators / domain;
  const auto below = [](std::int64_t n) { return *rc::gen::inRange<std::int64_t>(0, n); };
  const std::int64_t from = below(domains), to = (from + 1 + below(domains - 1)) % domains;
  const std::int64_t p = below(domain);
  const bool rails_meet =
      fabric.scale_out.kind != ScaleOutKind::rail_only && fabric.scale_out.tiers.size() > 1;
  return {from * domain + p, to * domain + (rails_meet ? below(domain) : p)};
}

inline NetworkFault random_fault(const Router& router) {
  const ClosShape& shape = router.shape();
  const auto below = [](std::int64_t n) { return *rc::gen::inRange<std::int64_t>(0, n); };
  const std::size_t tiers = shape.tiers.size();
  NetworkFault f;
  f.remaining = *rc::gen::element(0.0, 0.0, 0.25, 0.7, 1.0 / 3);
  f.accelerator = below(shape.accelerators);
  f.leaf = router.leaf_of(f.accelerator);
  f.plane = below(shape.planes);
  if (tiers > 1) {
    f.spine = below(shape.tiers[1].switches);
    f.parallel = below(2) - 1;
  }
  if (tiers == 3) {
    f.pod = below(shape.tiers[1].groups);
    f.core = below(std::max<std::int64_t>(1, shape.tiers[1].up / shape.tiers[1].parallel));
  }
  // Planes last and rarely: losing one is a plain case, and hides the others.
  constexpr FaultKind kinds[] = {FaultKind::nic,   FaultKind::leaf,       FaultKind::leaf_spine,
                                 FaultKind::spine, FaultKind::spine_core, FaultKind::plane};
  f.kind = kinds[below(tiers == 1 ? 2 : tiers == 2 ? 4 : 6)];
  return f;
}

}  // namespace orrery
