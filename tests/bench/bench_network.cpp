// SPDX-License-Identifier: Apache-2.0
// Measures one collective on the flow network, from the wiring to the last flow, by size and fault.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>

#include "sim/engine/cluster.h"
#include "sim/engine/network/flow_network.h"
#include "sim/engine/network/ideal_network.h"

namespace {

using namespace orrery;

struct Job {
  Cluster cluster;
  JobGround ground;
  Collective collective;
};

// One collective over all ranks: `used` of every scale-up domain.
Job job_on(const char* cluster, std::int64_t ranks, std::int64_t used, CollectiveKind kind,
           double bytes) {
  const std::int64_t domains = ranks / used;
  Job job{.cluster = load_cluster(cluster, 8)};
  const std::int64_t domain = job.cluster.fabric.scale_up.domain;
  job.ground = {.ranks = ranks, .ranks_per_domain = used, .domain = domain};
  job.collective = {
      .kind = kind,
      .group = {.size = ranks, .per_domain = used, .domains = domains, .span = domains * domain},
      .bytes = Bytes(bytes)};
  return job;
}

void report(benchmark::State& state, const FlowPrice& price) {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["collective_ms"] = price.time.time.si() * 1e3;
  state.counters["flows"] = static_cast<double>(price.flows);
  state.counters["classes"] = static_cast<double>(price.classes);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void run(benchmark::State& state, const Job& job, const Conditions& conditions) {
  FlowPrice price;
  for (auto _ : state)
    price = flow_price(job.collective, job.cluster.fabric, job.cluster.collective_costs, job.ground,
                       conditions);
  report(state, price);
}

constexpr double mib = 1048576;

// Target: under 10 ms.
void all_reduce_64mib_4096_h100(benchmark::State& state) {
  run(state, job_on("dgx-h100", 4096, 8, CollectiveKind::all_reduce, 64 * mib), {});
}
BENCHMARK(all_reduce_64mib_4096_h100)->Unit(benchmark::kMillisecond);

// Targets: under 1 s and 1 GB healthy, under 3 s with a fault. 16,384 racks, 64 GPUs used in each.
Job million() {
  return job_on("gb300-4plane", 1 << 20, 64, CollectiveKind::all_reduce, 1024 * mib);
}
void all_reduce_million_gb300(benchmark::State& state) { run(state, million(), {}); }
BENCHMARK(all_reduce_million_gb300)->Unit(benchmark::kMillisecond);

void all_reduce_million_failed_spine_link(benchmark::State& state) {
  run(state, million(),
      {.faults = {{.kind = FaultKind::leaf_spine, .leaf = 5, .spine = 3, .plane = 1}}});
}
BENCHMARK(all_reduce_million_failed_spine_link)->Unit(benchmark::kMillisecond);

void all_reduce_million_slow_nic(benchmark::State& state) {
  run(state, million(),
      {.faults = {{.kind = FaultKind::nic, .accelerator = 72'000, .plane = -1, .remaining = 0.5}}});
}
BENCHMARK(all_reduce_million_slow_nic)->Unit(benchmark::kMillisecond);

// Cost by size: flows are one entry a domain, classes stay.
void reduce_scatter_gb300_by_gpus(benchmark::State& state) {
  run(state, job_on("gb300-4plane", state.range(0), 64, CollectiveKind::reduce_scatter, 1024 * mib),
      {});
}
BENCHMARK(reduce_scatter_gb300_by_gpus)
    ->RangeMultiplier(10)
    ->Arg(1 << 10)
    ->Arg(1 << 13)
    ->Arg(1 << 17)
    ->Arg(1 << 20)
    ->Unit(benchmark::kMillisecond);

// A second question about the same collective, and one on the ideal network.
void ideal_million_gb300(benchmark::State& state) {
  const Job job = million();
  for (auto _ : state) {
    IdealNetwork network(job.cluster.fabric, job.cluster.collective_costs);
    benchmark::DoNotOptimize(network.price(job.collective));
  }
}
BENCHMARK(ideal_million_gb300)->Unit(benchmark::kMillisecond);

}  // namespace
