// SPDX-License-Identifier: Apache-2.0
// Measures what the step of a training costs on a place of a shared cluster: known, and new.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>

#include "hw_models/catalog.h"
#include "sim/base/random.h"
#include "sim/engine/cluster.h"
#include "sim/engine/prices/place_prices.h"

namespace {

using namespace orrery;

constexpr std::int64_t machine = 32'768;  // accelerators of the cluster

// Leaves that block nothing; half of the links that they need; flows that are hashed.
enum Wiring : std::int64_t { open_rails, tapered, hashed };

Cluster cluster_of(Wiring wiring) {
  Cluster cluster = load_cluster(wiring == hashed ? "h100-roce" : "dgx-h100", machine);
  if (wiring == tapered) cluster.fabric.scale_out.tiers.front().oversubscription.value = 2;
  return cluster;
}

Layout dense_layout(std::int64_t gpus) {
  Layout l;
  l.tp = 8;
  l.pp = 16;
  l.dp = gpus / 128;
  l.vpp = 8;
  l.schedule = Schedule::interleaved;
  l.zero_stage = 1;
  l.sequence_parallel = true;
  return l;
}

Layout expert_layout(std::int64_t gpus) {
  Layout l;
  l.pp = 16;
  l.dp = gpus / 16;
  l.ep = 32;
  l.zero_stage = 1;
  return l;
}

Scenario training(Wiring wiring, bool experts, std::int64_t gpus) {
  const char* name = experts ? "deepseek-v3" : "llama3.1-405b";
  Scenario s{.cluster = cluster_of(wiring),
             .model = read_model(load_catalog_entry("workloads/catalog/models", "model", name)),
             .job = {},
             .layout = experts ? expert_layout(gpus) : dense_layout(gpus),
             .stack = {},
             .network = NetworkMode::ideal,
             .conditions = {}};
  s.job.sequence = experts ? 4096 : 8192;
  s.job.global_batch = 4 * s.layout.dp * s.layout.pp;
  s.stack = load_stack(
      "megatron-core",
      {.architecture = std::string(to_text(s.cluster.device.architecture)), .moe = experts},
      data_root() / "workloads/catalog/stacks");
  if (const auto reason = invalid_reason(s.layout, s.model, s.job, gpus))
    throw std::runtime_error(*reason);
  return s;
}

Grants grants_of(std::vector<std::int32_t> hosts) {
  std::sort(hosts.begin(), hosts.end());
  Grants grants;
  for (const std::int32_t host : hosts) {
    if (!grants.empty() && grants.back().host + grants.back().hosts == host)
      ++grants.back().hosts;
    else
      grants.push_back({host, 1, 8});
  }
  return grants;
}

// Whole hosts anywhere.
std::vector<std::int32_t> anywhere(RandomStream& random, std::int64_t hosts) {
  std::vector<std::int32_t> list(static_cast<std::size_t>(machine / 8));
  std::iota(list.begin(), list.end(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(hosts); ++i)
    std::swap(list[i], list[i + random.below(list.size() - i)]);
  list.resize(static_cast<std::size_t>(hosts));
  return list;
}

StepPlacePrices prices_of(const Scenario& scenario) {
  return StepPlacePrices({{.work = 1, .scenario = scenario}},
                         slot_shape(scenario.cluster.fabric, machine, 8));
}

// `places` of one class that has a price, one after the other. Groups have powers of two of hosts:
// bits that change in all numbers of hosts swap whole groups.
void known_price(benchmark::State& state, bool contiguous, std::int64_t places) {
  const std::int64_t hosts = state.range(0);
  const Scenario scenario = training(open_rails, false, hosts * 8);
  StepPlacePrices prices = prices_of(scenario);
  RandomStream random(7, 0);
  std::vector<std::int32_t> first = anywhere(random, hosts);
  if (contiguous) std::iota(first.begin(), first.end(), 0);
  std::vector<Grants> list;
  for (std::int64_t i = 0; i < places; ++i) {
    std::vector<std::int32_t> other = first;
    for (std::int32_t& host : other) host ^= static_cast<std::int32_t>(i * machine / 8 / places);
    list.push_back(grants_of(other));
    if (contiguous &&
        hosts == 16)  // anywhere in a leaf group of 32 hosts: that many places are few
      list.back() = {{static_cast<std::int32_t>(i / 16 * 32 + i % 16), 16, 8}};
  }
  prices.price(1, list.front());
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(prices.price(1, list[i]));
    if (++i == list.size()) i = 0;
  }
  if (prices.classes() != 1) state.SkipWithError("several classes");
}
// Where it was asked for lately, and where nobody asked before.
void known_contiguous_again(benchmark::State& state) { known_price(state, true, 1); }
void known_contiguous(benchmark::State& state) { known_price(state, true, 1024); }
void known_anywhere_again(benchmark::State& state) { known_price(state, false, 4); }
void known_anywhere(benchmark::State& state) { known_price(state, false, 1024); }
BENCHMARK(known_contiguous_again)->ArgName("hosts")->Arg(64);
BENCHMARK(known_contiguous)->ArgName("hosts")->Arg(16);
BENCHMARK(known_anywhere_again)->ArgName("hosts")->Arg(64)->Arg(2048);
BENCHMARK(known_anywhere)->ArgName("hosts")->Arg(64)->Arg(2048);

// A training on places that nobody has asked for: random hosts of the whole cluster. The first is
// asked for before the clock runs.
void new_price(benchmark::State& state) {
  const auto wiring = static_cast<Wiring>(state.range(0));
  const std::int64_t gpus = state.range(2);
  const Scenario scenario = training(wiring, state.range(1) == 1, gpus);
  StepPlacePrices prices = prices_of(scenario);
  RandomStream random(7, 0);
  const auto place = [&] { return grants_of(anywhere(random, gpus / 8)); };
  prices.price(1, place());
  for (auto _ : state) {
    state.PauseTiming();
    const Grants next = place();
    state.ResumeTiming();
    benchmark::DoNotOptimize(prices.price(1, next));
  }
  state.counters["classes"] = static_cast<double>(prices.classes());
}
BENCHMARK(new_price)
    ->ArgNames({"wiring", "experts", "gpus"})
    ->ArgsProduct({{open_rails, tapered, hashed}, {0, 1}, {512, 2048, 16'384}})
    ->Unit(benchmark::kMillisecond);

// The first place of all: the training is lowered, and stepped side by side as well.
void first_price(benchmark::State& state) {
  const std::int64_t gpus = state.range(2);
  const Scenario scenario =
      training(static_cast<Wiring>(state.range(0)), state.range(1) == 1, gpus);
  RandomStream random(7, 0);
  for (auto _ : state) {
    state.PauseTiming();
    const Grants place = grants_of(anywhere(random, gpus / 8));
    StepPlacePrices prices = prices_of(scenario);
    state.ResumeTiming();
    benchmark::DoNotOptimize(prices.price(1, place));
  }
}
BENCHMARK(first_price)
    ->ArgNames({"wiring", "experts", "gpus"})
    ->ArgsProduct({{open_rails, tapered, hashed}, {0, 1}, {512, 2048, 16'384}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
