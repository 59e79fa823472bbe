// SPDX-License-Identifier: Apache-2.0
// Holds marks of places to the classes that they stand for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/base/random.h"
#include "sim/engine/class_mark.h"
#include "sim/engine/placement_class.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

// Groups whose numbers of parts are powers of two, and such as are not; one level, none.
std::vector<SlotShape> shapes() {
  SlotShape even{.hosts = 128, .gpus_per_host = 8, .last_host_gpus = 8};
  even.levels = {{"leaf group", 4}, {"pod", 32}};
  SlotShape odd{.hosts = 126, .gpus_per_host = 4, .last_host_gpus = 4};
  odd.levels = {{"domain", 3}, {"leaf group", 6}, {"pod", 42}};
  SlotShape one{.hosts = 100, .gpus_per_host = 8, .last_host_gpus = 8};
  one.levels = {{"leaf group", 10}};
  return {even, odd, one, {.hosts = 64, .gpus_per_host = 8, .last_host_gpus = 8}};
}

// A few runs of hosts, some next to each other, in any order.
Grants some_runs(RandomStream& random, const SlotShape& shape) {
  Grants grants;
  const auto below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(n)));
  };
  const std::int32_t most = random.below(2) == 0 ? 3 : 45;
  for (std::int32_t host = below(shape.hosts); host < shape.hosts;) {
    const std::int32_t hosts = std::min(shape.hosts - host, 1 + below(most));
    const std::int32_t gpus =
        random.below(3) > 0 ? shape.gpus_per_host : 1 + below(shape.gpus_per_host);
    grants.push_back({host, hosts, gpus});
    host += hosts + (random.below(2) == 0 ? 0 : below(20));
    if (random.below(6) == 0) break;
  }
  for (std::size_t i = grants.size(); i > 1; --i) std::swap(grants[i - 1], grants[random.below(i)]);
  return grants;
}

}  // namespace

TEST_CASE("law: places have one mark if and only if they are of one class", "[placement]") {
  RandomStream random(fresh(61), 0);
  for (const SlotShape& shape : shapes()) {
    const ClassMarker marker(shape);
    std::map<std::vector<std::int32_t>, ClassMark> mark_of;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::int32_t>> class_of;
    std::size_t again = 0;
    for (int i = 0; i < 4000; ++i) {
      const Grants grants = some_runs(random, shape);
      const std::vector<std::int32_t> key = placement_class(grants, shape).key;
      const ClassMark mark = marker.mark(grants);
      const auto [known, fresh_class] = mark_of.emplace(key, mark);
      CHECK(known->second == mark);
      const auto [same, fresh_mark] = class_of.emplace(std::pair(mark.a, mark.b), key);
      CHECK(same->second == key);
      again += fresh_class ? 0 : 1;
    }
    CHECK(again > 100);
    CHECK(mark_of.size() > 300);
  }
}

}  // namespace orrery
