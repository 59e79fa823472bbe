// SPDX-License-Identifier: Apache-2.0
// Holds prices of places, which share what they have in common, to whole steps one by one.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/engine/prices/place_prices.h"
#include "tests/base/fresh_seed.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/scattered_case.h"

namespace orrery {
namespace {

using test::SharedCluster;

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

// Rails, racks of several hosts, hashing; open and tapered.
std::vector<SharedCluster> clusters() {
  return {SharedCluster("llama3-8b", "dgx-h100", 512, 32, 4, 1),
          SharedCluster("mixtral-8x7b", "dgx-h100", 512, 32, 4, 4),
          SharedCluster("mixtral-8x7b", "h100-spectrum-x", 256, 16, 4, 3, false),
          SharedCluster("mixtral-8x7b", "gb200-nvl72", 1152, 144, 2, 2),
          SharedCluster("mixtral-8x7b", "h100-roce", 256, 16, 4, 1),
          SharedCluster("llama3-8b", "h100-roce", 256, 16, 4, 2)};
}

Grants anywhere(RandomStream& random, const SlotShape& shape, std::int64_t gpus, bool parts) {
  std::vector<std::int32_t> hosts(static_cast<std::size_t>(shape.hosts));
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = hosts.size(); i > 1; --i) std::swap(hosts[i - 1], hosts[random.below(i)]);
  Grants grants;
  for (std::size_t i = 0; gpus > 0 && i < hosts.size(); ++i) {
    const std::int32_t most =
        parts && random.below(2) == 0 ? shape.gpus_per_host / 2 : shape.gpus_per_host;
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(gpus, most));
    grants.push_back({hosts[i], 1, taken});
    gpus -= taken;
  }
  return grants;
}

Scenario scenario_of(const SharedCluster& shared, const Layout& layout, NetworkMode network) {
  return {.cluster = shared.c.cluster,
          .model = shared.c.model,
          .job = shared.c.job,
          .layout = layout,
          .stack = shared.c.stack,
          .network = network,
          .conditions = {}};
}

// The step as anybody asks for it, with nothing kept.
StepResult whole_step(const Scenario& scenario, const ScatteredRanks& ranks, NetworkMode network) {
  Scenario here = scenario;
  here.ranks = ranks;
  here.network = network;
  return step(step_context(here), here.model, here.job, here.layout, here.stack);
}

void check_same(const StepResult& fast, const StepResult& whole) {
  CHECK(fast.step.ps == whole.step.ps);
  REQUIRE(fast.stages.size() == whole.stages.size());
  for (std::size_t s = 0; s < fast.stages.size(); ++s)
    CHECK(fast.stages[s].label == whole.stages[s].label);
  CHECK(bits(fast.energy_per_gpu.si()) == bits(whole.energy_per_gpu.si()));
  REQUIRE(fast.network.size() == whole.network.size());
  for (std::size_t i = 0; i < fast.network.size(); ++i) {
    const NetworkUse &a = fast.network[i], &b = whole.network[i];
    CHECK(a.label == b.label);
    CHECK(a.collective == b.collective);
    CHECK(bits(a.count) == bits(b.count));
    CHECK(bits(a.price.time.time.si()) == bits(b.price.time.time.si()));
    CHECK(bits(a.price.time.transfer.si()) == bits(b.price.time.transfer.si()));
    CHECK(a.price.bytes == b.price.bytes);
    REQUIRE(a.price.by_stage.size() == b.price.by_stage.size());
    for (std::size_t s = 0; s < a.price.by_stage.size(); ++s)
      CHECK(bits(a.price.by_stage[s].time.si()) == bits(b.price.by_stage[s].time.si()));
  }
}

}  // namespace

TEST_CASE("law: a place is priced to the bit as the whole step there", "[placement]") {
  RandomStream random(fresh(62), 0);
  int scattered = 0;
  for (const SharedCluster& shared : clusters()) {
    for (int layouts = 0; layouts < 6; ++layouts) {
      const std::int64_t gpus = (std::int64_t{16} << random.below(3)) *
                                (random.below(3) == 0 ? 3 : 1) * (shared.of_host() == 8 ? 1 : 2);
      const Layout layout = test::random_layout(random, shared.c.model, shared.c.job, gpus);
      const Scenario scenario = scenario_of(shared, layout, NetworkMode::ideal);
      PlaceSteps steps(scenario);
      for (int i = 0; i < 5; ++i) {
        const PlacementClass placed =
            placement_class(anywhere(random, shared.shape, gpus, i % 3 == 2), shared.shape);
        if (placed.gpus != gpus) continue;
        const ScatteredRanks ranks =
            i == 1 ? ScatteredRanks{} : canonical_ranks(placed, shared.shape);
        scattered += ranks.contiguous() ? 0 : 1;
        INFO(shared.c.cluster.name << " " << to_text(layout) << " place " << i);
        for (const NetworkMode network : test::both_networks)
          check_same(steps.step_at(ranks, network), whole_step(scenario, ranks, network));
      }
    }
  }
  CHECK(scattered > 100);
}

TEST_CASE("prices of places do not depend on who asked before", "[placement]") {
  RandomStream random(fresh(63), 0);
  const SharedCluster shared("mixtral-8x7b", "h100-spectrum-x", 256, 16, 4, 3, false);
  const Layout layout = test::random_layout(random, shared.c.model, shared.c.job, 64);
  std::vector<Grants> places;
  for (int i = 0; i < 12; ++i) places.push_back(anywhere(random, shared.shape, 64, i % 2 == 0));
  const auto prices_in_order = [&] {
    StepPlacePrices prices(
        {{.work = 3, .scenario = scenario_of(shared, layout, NetworkMode::ideal)}}, shared.shape);
    std::vector<PlacePrice> out;
    for (const Grants& place : places) out.push_back(prices.price(3, place));
    for (std::size_t i = 0; i < places.size(); ++i)  // and again, now that they are known
      CHECK(prices.price(3, places[i]).step_ps == out[i].step_ps);
    return out;
  };
  const std::vector<PlacePrice> forwards = prices_in_order();
  std::reverse(places.begin(), places.end());
  std::vector<PlacePrice> backwards = prices_in_order();
  std::reverse(backwards.begin(), backwards.end());
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    CHECK(forwards[i].step_ps == backwards[i].step_ps);
    REQUIRE(forwards[i].trunks.size() == backwards[i].trunks.size());
    for (std::size_t t = 0; t < forwards[i].trunks.size(); ++t) {
      CHECK(bits(forwards[i].trunks[t].load) == bits(backwards[i].trunks[t].load));
      CHECK(bits(forwards[i].trunks[t].busy) == bits(backwards[i].trunks[t].busy));
      CHECK(bits(forwards[i].trunks[t].hidden) == bits(backwards[i].trunks[t].hidden));
    }
  }
}

}  // namespace orrery
