// SPDX-License-Identifier: Apache-2.0
// Measures the flow solver, its increments, the clock and the folding.
#include <benchmark/benchmark.h>

#include <vector>

#include "sim/base/random.h"
#include "sim/engine/flows/clock.h"
#include "sim/engine/flows/symmetry.h"

namespace {

using namespace orrery;

struct Fabric {
  std::uint32_t endpoints, per_leaf, spines;
};

// Every endpoint to every one over two tiers, link by link; `hashed`: over one spine each, as ECMP
// does, or spread over all.
FlowTable all_to_all(const Fabric& fabric, bool hashed) {
  const std::uint32_t n = fabric.endpoints, leaves = n / fabric.per_leaf;
  FlowTable table;
  for (std::uint32_t i = 0; i < 2 * n; ++i) table.add_link(50e9);
  for (std::uint32_t i = 0; i < 2 * leaves * fabric.spines; ++i) table.add_link(100e9);
  const std::uint32_t up = 2 * n, down = up + leaves * fabric.spines;
  RandomStream random(12, 0);
  std::vector<FlowUse> uses;
  for (std::uint32_t from = 0; from < n; ++from)
    for (std::uint32_t to = 0; to < n; ++to) {
      uses.assign({{from, 1}, {n + to, 1}});
      const std::uint32_t a = from / fabric.per_leaf, b = to / fabric.per_leaf;
      const auto chosen = static_cast<std::uint32_t>(random.below(fabric.spines));
      for (std::uint32_t s = 0; a != b && s < fabric.spines; ++s) {
        if (hashed && s != chosen) continue;
        const double share = hashed ? 1 : 1.0 / fabric.spines;
        uses.push_back({up + a * fabric.spines + s, share});
        uses.push_back({down + b * fabric.spines + s, share});
      }
      table.add_flow({.bytes = 1e6}, uses);
    }
  return table;
}

void describe(benchmark::State& state, const FlowTable& table) {
  state.counters["flows"] = static_cast<double>(table.flows.size());
  state.counters["uses"] = static_cast<double>(table.uses.size());
}

// One solve of 4,096 flows from scratch; items are flows settled.
void solve_all_to_all(benchmark::State& state) {
  const FlowTable table = all_to_all({64, 8, 4}, state.range(0) != 0);
  FlowSolver solver(table);
  for (FlowIndex f = 0; f < table.flows.size(); ++f) solver.start(f);
  bool halved = false;
  for (auto _ : state) {
    // A change of capacity makes the whole component be solved.
    solver.set_capacity(0, (halved = !halved) ? 25e9 : 50e9);
    benchmark::DoNotOptimize(solver.solve().size());
  }
  describe(state, table);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(solver.solved_flows()));
}
BENCHMARK(solve_all_to_all)->ArgName("hashed")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

// From the first byte of an unfolded all-to-all to its last; items are flows ended.
void run_all_to_all(benchmark::State& state) {
  const FlowTable table = all_to_all({64, 8, 4}, state.range(0) != 0);
  std::uint64_t solves = 0;
  for (auto _ : state) {
    FlowClock clock(table);
    for (FlowIndex f = 0; f < table.flows.size(); ++f) clock.start(f, {0});
    while (clock.next()) {
    }
    solves = clock.solves();
  }
  describe(state, table);
  state.counters["solves"] = static_cast<double>(solves);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(table.flows.size()));
}
BENCHMARK(run_all_to_all)->ArgName("hashed")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// One flow of a component stops and starts again; many other components stand still.
void start_and_stop(benchmark::State& state) {
  const auto members = static_cast<std::uint32_t>(state.range(0));
  FlowTable table;
  for (std::uint32_t c = 0; c < 65536 / members; ++c) {
    const LinkIndex link = table.add_link(50e9);
    for (std::uint32_t m = 0; m < members; ++m) {
      const FlowUse uses[] = {{table.add_link(20e9), 1}, {link, 1}};
      table.add_flow({}, uses);
    }
  }
  FlowSolver solver(table);
  for (FlowIndex f = 0; f < table.flows.size(); ++f) solver.start(f);
  solver.solve();
  FlowIndex flow = 0;
  for (auto _ : state) {
    flow = (flow + 997) % static_cast<FlowIndex>(table.flows.size());
    solver.stop(flow);
    benchmark::DoNotOptimize(solver.solve().size());
    solver.start(flow);
    benchmark::DoNotOptimize(solver.solve().size());
  }
  describe(state, table);
}
BENCHMARK(start_and_stop)->ArgName("component")->Arg(1)->Arg(16)->Arg(256)->Arg(4096);

// Folding, one uplink at half its rate; items are uses.
void fold_all_to_all(benchmark::State& state) {
  const auto endpoints = static_cast<std::uint32_t>(state.range(0));
  FlowTable table = all_to_all({endpoints, 8, 4}, false);
  table.links[2 * endpoints].capacity /= 2;
  Folded folded;
  for (auto _ : state) folded = fold(table);
  describe(state, table);
  state.counters["classes"] = static_cast<double>(folded.table.flows.size());
  state.counters["rounds"] = folded.rounds;
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(table.uses.size()));
}
BENCHMARK(fold_all_to_all)
    ->ArgName("endpoints")
    ->Arg(16)
    ->Arg(32)
    ->Arg(104)
    ->Arg(328)
    ->Unit(benchmark::kMillisecond);

// A ring's edges over a rail fabric: few uses per flow, as collectives make them; items are uses.
void fold_rings(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  FlowTable table;
  for (std::uint32_t i = 0; i < 2 * ranks; ++i) table.add_link(50e9);
  for (std::uint32_t i = 0; i < ranks; ++i) table.add_link(100e9);
  for (std::uint32_t i = 0; i < ranks; ++i) {
    const std::uint32_t next = (i + 8) % ranks, leaf = i / 256 * 256;
    const FlowUse uses[] = {{i, 1},
                            {ranks + next, 1},
                            {2 * ranks + leaf + i % 8, 0.25},
                            {2 * ranks + leaf + 8 + i % 8, 0.25}};
    table.add_flow({.bytes = 1e6}, uses);
  }
  table.links[3].capacity /= 2;
  Folded folded;
  for (auto _ : state) folded = fold(table);
  describe(state, table);
  state.counters["classes"] = static_cast<double>(folded.table.flows.size());
  state.counters["rounds"] = folded.rounds;
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(table.uses.size()));
}
BENCHMARK(fold_rings)
    ->ArgName("ranks")
    ->Arg(256)
    ->Arg(4096)
    ->Arg(65536)
    ->Arg(262144)
    ->Unit(benchmark::kMillisecond);

}  // namespace
