// SPDX-License-Identifier: Apache-2.0
// Tests counts of free accelerators against a plain recount, over random grants.
#include "topologies/slots.h"

#include <catch2/catch.hpp>
#include <set>

#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"

namespace orrery {
namespace {

TEST_CASE("a set of hosts finds what a sorted set finds", "[slots]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  for (const std::int32_t hosts : {1, 63, 64, 65, 4096, 5000, 300'000}) {
    RandomStream random(seed, static_cast<std::uint64_t>(hosts));
    HostSet set(hosts);
    std::set<std::int32_t> plain;
    for (int i = 0; i < 3000; ++i) {
      const auto host = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(hosts)));
      if (random.below(3) == 0) {
        set.erase(host);
        plain.erase(host);
      } else {
        set.insert(host);
        plain.insert(host);
      }
      const auto from = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(hosts)));
      const auto next = plain.lower_bound(from);
      REQUIRE(set.first(from) == (next == plain.end() ? -1 : *next));
      REQUIRE(set.size() == static_cast<std::int32_t>(plain.size()));
      REQUIRE(set.contains(host) == plain.contains(host));
    }
  }
}

TEST_CASE("counts of slots are those of a recount", "[slots]") {
  const std::uint64_t seed = fresh(23);
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  SlotShape shape{.hosts = 37, .gpus_per_host = 8, .last_host_gpus = 3};
  shape.levels = {{"leaf group", 4}, {"pod", 16}};
  Slots slots(shape);
  std::vector<HostGrant> held;
  for (int i = 0; i < 4000; ++i) {
    const auto host = static_cast<std::int32_t>(random.below(37));
    if (random.below(2) == 0 && slots.free_of(host) > 0) {
      const auto gpus = static_cast<std::int32_t>(
          1 + random.below(static_cast<std::uint64_t>(slots.free_of(host))));
      held.push_back({.host = host, .hosts = 1, .gpus = gpus});
      slots.take({&held.back(), 1});
    } else if (!held.empty()) {
      std::swap(held[random.below(held.size())], held.back());
      slots.give({&held.back(), 1});
      held.pop_back();
    }
    std::int64_t free = 0;
    for (std::int32_t h = 0; h < 37; ++h) {
      free += slots.free_of(h);
      REQUIRE(slots.with_free(slots.free_of(h)).contains(h));
    }
    REQUIRE(slots.free() == free);
    for (std::size_t level = 0; level < 2; ++level)
      for (std::int32_t g = 0; g < slots.groups(level); ++g) {
        std::int32_t whole = 0;
        for (std::int32_t h = g * shape.levels[level].reach;
             h < std::min(37, (g + 1) * shape.levels[level].reach); ++h)
          whole += slots.free_of(h) == 8 ? 1 : 0;
        REQUIRE(slots.whole_hosts(level, g) == whole);
      }
  }
  for (const HostGrant& grant : held) slots.give({&grant, 1});
  CHECK(slots.free() == shape.gpus());
  CHECK(shape.gpus() == 36 * 8 + 3);
}

}  // namespace
}  // namespace orrery
