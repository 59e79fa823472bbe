// SPDX-License-Identifier: Apache-2.0
// Measures how fast a place on a shared cluster is told from others, and groups found on it.
#include <benchmark/benchmark.h>

#include <boost/container_hash/hash.hpp>
#include <unordered_map>

#include "sim/base/random.h"
#include "sim/engine/class_mark.h"
#include "sim/engine/cluster.h"
#include "sim/engine/placement.h"
#include "sim/engine/placement_class.h"

namespace {

using namespace orrery;

constexpr std::int64_t machine = 32'768;  // accelerators of the cluster

struct SharedMachine {
  Fabric fabric = load_cluster("dgx-h100", machine).fabric;
  SlotShape shape = slot_shape(fabric, machine, 8);
};

// So many hosts, each by itself and none twice.
Grants apart(const SharedMachine& shared, std::int64_t hosts, std::int32_t gpus = 8) {
  Grants grants;
  RandomStream random(7, 0);
  const std::int64_t every = shared.shape.hosts / hosts;
  for (std::int64_t i = 0; i < hosts; ++i)
    grants.push_back(
        {static_cast<std::int32_t>(
             i * every + static_cast<std::int64_t>(random.below(
                             static_cast<std::uint64_t>(std::max<std::int64_t>(1, every - 1))))),
         1, gpus});
  return grants;
}

struct KeyHash {
  std::size_t operator()(const PlacementClass& c) const {
    return boost::hash_range(c.key.begin(), c.key.end());
  }
};

void look_up(benchmark::State& state, const SharedMachine& shared, const Grants& grants) {
  std::unordered_map<PlacementClass, std::int64_t, KeyHash> prices;
  prices.emplace(placement_class(grants, shared.shape), 1);
  for (auto _ : state)
    benchmark::DoNotOptimize(prices.find(placement_class(grants, shared.shape))->second);
}

void mark(benchmark::State& state, const SharedMachine& shared, const Grants& grants) {
  const ClassMarker marker(shared.shape);
  for (auto _ : state) benchmark::DoNotOptimize(marker.mark(grants));
}
void mark_of_a_few_runs(benchmark::State& state) {
  const SharedMachine shared;
  mark(state, shared, {{3, 1, 8}, {40, 6, 8}, {200, 1, 4}});
}
BENCHMARK(mark_of_a_few_runs);
void mark_of_512_in_one_run(benchmark::State& state) {
  const SharedMachine shared;
  mark(state, shared, {{40, 64, 8}});
}
BENCHMARK(mark_of_512_in_one_run);
void mark_of_512_host_by_host(benchmark::State& state) {
  const SharedMachine shared;
  mark(state, shared, apart(shared, 64));
}
BENCHMARK(mark_of_512_host_by_host);

// Target: under 1 us, the price included that is known.
void class_of_a_few_runs(benchmark::State& state) {
  const SharedMachine shared;
  look_up(state, shared, {{40, 6, 8}, {3, 1, 8}, {200, 1, 4}});
}
BENCHMARK(class_of_a_few_runs);

void class_of_one_host(benchmark::State& state) {
  const SharedMachine shared;
  look_up(state, shared, {{40, 1, 8}});
}
BENCHMARK(class_of_one_host);

void class_of_16384_in_four_runs(benchmark::State& state) {
  const SharedMachine shared;
  look_up(state, shared, {{0, 500, 8}, {700, 500, 8}, {1300, 1000, 8}, {3000, 48, 8}});
}
BENCHMARK(class_of_16384_in_four_runs);

// 2,048 runs of one host.
void class_of_16384_host_by_host(benchmark::State& state) {
  const SharedMachine shared;
  look_up(state, shared, apart(shared, 2048));
}
BENCHMARK(class_of_16384_host_by_host)->Unit(benchmark::kMicrosecond);

Layout layout_of_16384() {
  Layout l;
  l.tp = 8;
  l.pp = 16;
  l.cp = 2;
  l.dp = 64;
  l.ep = 8;
  return l;
}

void place_on(benchmark::State& state, const SharedMachine& shared, const ScatteredRanks& ranks) {
  const Layout layout = layout_of_16384();
  for (auto _ : state) benchmark::DoNotOptimize(place(layout, shared.fabric, ranks));
}

void place_16384_contiguous(benchmark::State& state) { place_on(state, SharedMachine(), {}); }
BENCHMARK(place_16384_contiguous)->Unit(benchmark::kMicrosecond);

// Target: under 1 ms.
void place_16384_host_by_host(benchmark::State& state) {
  const SharedMachine shared;
  place_on(state, shared,
           canonical_ranks(placement_class(apart(shared, 2048), shared.shape), shared.shape));
}
BENCHMARK(place_16384_host_by_host)->Unit(benchmark::kMicrosecond);

// Target: under 1 ms. Hosts give 5 or 3 accelerators, so that no two groups need be alike.
void place_16384_unevenly(benchmark::State& state) {
  const SharedMachine shared;
  ScatteredRanks ranks;
  for (std::int64_t host = 0; host < machine / 8; ++host)
    ranks.blocks.push_back({.accelerator = host * 8, .ranks = host % 2 == 0 ? 5 : 3});
  place_on(state, shared, ranks);
}
BENCHMARK(place_16384_unevenly)->Unit(benchmark::kMicrosecond);

}  // namespace
