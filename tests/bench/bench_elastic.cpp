// SPDX-License-Identifier: Apache-2.0
// Measures how long a round takes in which goodput sizes and places all elastic jobs of a cluster.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"
#include "sim/engine/elastic/elastic_run.h"
#include "sim/engine/elastic/goodput_sizes.h"
#include "sim/engine/elastic/packed_places.h"

namespace {

using namespace orrery;

constexpr std::int32_t host_gpus = 8;
constexpr std::int64_t round_us = 60'000'000;

// Twenty applications of 1 to 1,024 GPUs, whose steps fall less than their batches grow.
std::vector<ElasticApplication> applications_of(std::int32_t most_gpus) {
  RandomStream random(3, 0);
  std::vector<ElasticApplication> out;
  for (int a = 0; a < 20; ++a) {
    std::vector<BatchSteps> batches;
    std::vector<PlacedStep> samples;
    double steps = 2e5 * (1 + random.uniform());
    const double keeps = 0.5 + 0.3 * random.uniform(), sample_s = 0.001 + 0.01 * random.uniform();
    const double inside_s = 0.01 * random.uniform(), across_s = 0.1 * random.uniform();
    for (std::int64_t batch = 1024; batch <= 16'384; batch *= 2, steps *= keeps) {
      batches.push_back({batch, std::llround(steps)});
      for (std::int32_t gpus = 1; gpus <= most_gpus; gpus *= 2) {
        const double sync = gpus == 1 ? 0 : gpus <= host_gpus ? inside_s : across_s;
        const double pass = sync + 0.01 + sample_s * static_cast<double>(batch / gpus);
        samples.push_back({gpus, std::max(1, gpus / host_gpus), batch, 1, std::llround(1e12 * pass),
                           std::llround(1e12 * sync)});
      }
    }
    out.emplace_back("app " + std::to_string(a), batches, samples, "bench");
  }
  return out;
}

// Jobs of any age, each with the place of the round before.
struct BusyCluster {
  std::vector<ElasticApplication> applications = applications_of(1024);
  ElasticQuestion question;
  PaceTable paces{applications};
  std::vector<ElasticJob> jobs;
  std::vector<Grants> places;
  std::vector<RoundJob> active;
  RandomStream random{5, 0};

  BusyCluster(std::size_t count, std::int32_t gpus) : jobs(count), places(count), active(count) {
    question.hosts = gpus / host_gpus;
    question.gpus_per_host = host_gpus;
    for (std::size_t i = 0; i < count; ++i) {
      jobs[i].application = static_cast<std::uint32_t>(random.below(applications.size()));
      jobs[i].most = std::int32_t{16} << random.below(7);
      jobs[i].free_batch = true;
      active[i].number = static_cast<std::uint32_t>(i);
      active[i].asked = &jobs[i];
      active[i].restart = question.restart;
      active[i].place = &places[i];
      begin(i);
    }
  }
  void begin(std::size_t i) {
    places[i].clear();
    active[i].age.us = static_cast<std::int64_t>(random.below(60)) * 1'000'000;
    active[i].restarts = 0;
    active[i].most_run = 0;
    active[i].ran_across = false;
  }
  void round() {
    const RoundView view{FleetTime{}, active, question, paces, question.gpus()};
    const std::vector<std::int32_t> gpus = choose_goodput_sizes(view);
    std::vector<Grants> next(jobs.size());
    place_packed(view, gpus, next);
    for (std::size_t i = 0; i < next.size(); ++i) {
      RoundJob& job = active[i];
      if (next[i] != places[i] && !places[i].empty()) ++job.restarts;
      places[i] = next[i];
      job.most_run = std::max(job.most_run, gpus[i]);
      job.ran_across = job.ran_across || gpus[i] > host_gpus;
      job.age.us += round_us;
    }
  }
  // One in a hundred ends, and another one comes.
  void replace_some() {
    for (std::size_t i = 0; i < jobs.size() / 100; ++i) begin(random.below(jobs.size()));
  }
};

void goodput_round(benchmark::State& state) {
  BusyCluster cluster(static_cast<std::size_t>(state.range(0)),
                      static_cast<std::int32_t>(state.range(1)));
  for (int round = 0; round < 12; ++round) cluster.round();  // all have grown
  for (auto _ : state) {
    state.PauseTiming();
    cluster.replace_some();
    state.ResumeTiming();
    cluster.round();
  }
  std::int64_t held = 0;
  for (const Grants& place : cluster.places) held += gpus_of_place(place);
  state.counters["held"] = static_cast<double>(held) / static_cast<double>(state.range(1));
}
BENCHMARK(goodput_round)
    ->Args({100, 10'000})
    ->Args({1'000, 100'000})
    ->Args({1'000, 20'000})
    ->Args({3'000, 100'000})
    ->Unit(benchmark::kMillisecond);

// The first rounds, in which nobody holds anything and all grow from one GPU.
void goodput_first_rounds(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    BusyCluster cluster(1'000, 100'000);
    state.ResumeTiming();
    for (int round = 0; round < 10; ++round) cluster.round();
  }
}
BENCHMARK(goodput_first_rounds)->Unit(benchmark::kMillisecond);

}  // namespace
