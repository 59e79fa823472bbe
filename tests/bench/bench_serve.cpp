// SPDX-License-Identifier: Apache-2.0
// Measures how many requests a second are served in simulation, on engines of straight-line prices.
#include <benchmark/benchmark.h>

#include <chrono>

#include "sim/engine/serving/fleet.h"
#include "tests/engine/serving_prices.h"
#include "workloads/traffic/trace.h"
#include "workloads/traffic/traffic.h"

namespace {

using namespace orrery;

// About those of a 70B model on eight H100: 12 ms and more for tokens, 10,000 tokens/s of prompts.
AffinePrices large_model() {
  AffinePrices prices;
  prices.base = 11'000'000'000;
  prices.sequence = 15'000'000;
  prices.context = 12'000;
  prices.token = 40'000'000;
  prices.past = 20'000;
  prices.piece = 100'000;
  return prices;
}

ServingFleet fleet_of(const StepPrices& prices, std::int64_t replicas, RouterKind router) {
  ServingFleet fleet;
  fleet.engines.policy.max_sequences = 256;
  fleet.engines.shape.blocks = 40'000;
  fleet.engines.prices = &prices;
  fleet.engines.replicas = replicas;
  fleet.engines.router.kind = router;
  return fleet;
}

// Lengths as of conversations; requests a second of each engine that it can just keep up with.
Traffic conversations(std::int64_t requests, std::int64_t replicas) {
  Traffic traffic;
  traffic.arrivals = PoissonArrivals{Hertz(6.0 * static_cast<double>(replicas))};
  traffic.requests = requests;
  traffic.classes = {
      {"chat", 1, LognormalLength{900, 0.9, 16'000}, LognormalLength{180, 0.8, 4'000}}};
  return traffic;
}

void report(benchmark::State& state, const RequestList& list, const ServingFleet& fleet) {
  ServiceTimeline timeline;
  for (auto _ : state) {
    timeline = serve(list, fleet, {});
    benchmark::DoNotOptimize(timeline.end);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(list.requests.size()));
  const ServiceSummary summary = summarise(list, timeline);
  state.counters["ttft_p50_s"] = summary.ttft.p50.si();
  state.counters["tpot_p50_s"] = summary.tpot.p50.si();
  state.counters["steps"] = static_cast<double>(timeline.totals.steps);
  state.counters["batch"] =
      static_cast<double>(timeline.totals.sequences) / static_cast<double>(timeline.totals.steps);
}

// Arguments: requests. One engine.
void one_engine(benchmark::State& state) {
  const AffinePrices prices = large_model();
  report(state, make_requests(conversations(state.range(0), 1), 1),
         fleet_of(prices, 1, RouterKind::round_robin));
}
BENCHMARK(one_engine)->RangeMultiplier(10)->Range(1'000, 1'000'000)->Unit(benchmark::kMillisecond);

void sixteen_engines(benchmark::State& state) {
  const AffinePrices prices = large_model();
  report(state, make_requests(conversations(20'000, 16), 1),
         fleet_of(prices, 16, RouterKind::least_requests));
}
BENCHMARK(sixteen_engines)->Unit(benchmark::kMillisecond);

// Lengths and prefixes of a published trace, drawn with a fixed seed; its engines reuse prefixes.
void eight_workers(benchmark::State& state) {
  const AffinePrices prices = large_model();
  Traffic traffic;
  traffic.trace = std::make_shared<RequestList>(
      read_trace(ORRERY_SOURCE_DIR "/workloads/catalog/traces/mooncake_conversation.jsonl"));
  traffic.requests = 23'608;
  traffic.arrivals = PoissonArrivals{Hertz(12)};
  ServingFleet fleet = fleet_of(prices, 8, RouterKind::prefix);
  report(state, make_requests(traffic, 1), fleet);
}
BENCHMARK(eight_workers)->Unit(benchmark::kMillisecond);

void thousand_engines(benchmark::State& state) {
  const AffinePrices prices = large_model();
  report(state, make_requests(conversations(1'000'000, 1024), 1),
         fleet_of(prices, 1024, static_cast<RouterKind>(state.range(0))));
}
BENCHMARK(thousand_engines)
    ->ArgName("router")
    ->Arg(static_cast<int>(RouterKind::round_robin))
    ->Arg(static_cast<int>(RouterKind::least_requests))
    ->Unit(benchmark::kMillisecond);

void read_mooncake(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(
        read_trace(ORRERY_SOURCE_DIR "/workloads/catalog/traces/mooncake_conversation.jsonl")
            .requests.size());
}
BENCHMARK(read_mooncake)->Unit(benchmark::kMillisecond);

void draw_requests(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(make_requests(conversations(100'000, 1), 1).requests.size());
  state.SetItemsProcessed(state.iterations() * 100'000);
}
BENCHMARK(draw_requests)->Unit(benchmark::kMillisecond);

}  // namespace
