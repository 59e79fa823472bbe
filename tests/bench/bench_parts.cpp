// SPDX-License-Identifier: Apache-2.0
// Times parts of a prediction whose headers say how long they take: memory, least step, goodput.
#include <benchmark/benchmark.h>

#include "hw_models/catalog.h"
#include "hw_models/catalogue_hash.h"
#include "sim/advise/search/bound.h"
#include "sim/base/random.h"
#include "sim/engine/cluster.h"
#include "sim/engine/step/series.h"
#include "sim/outcome/months/goodput.h"
#include "tests/outcome/goodput_case.h"
#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"

namespace {

using namespace orrery;

// Llama 3.1 405B on 16,384 H100.
struct Large {
  Cluster cluster = load_cluster("dgx-h100", 16384);
  Model model = load_model("llama3.1-405b", data_root() / "workloads/catalog/models");
  Stack stack =
      load_stack("megatron-core",
                 {.architecture = "hopper", .device = cluster.device.name, .family = "llama3"},
                 data_root() / "workloads/catalog/stacks");
  Job job;
  Layout layout{.tp = 8, .pp = 16, .dp = 128, .recompute = Recompute::full};
  StepContext context = step_context(cluster);
  Large() {
    job.sequence = 8192;
    job.global_batch = 2048;
  }
};

// Target: a few microseconds.
void memory(benchmark::State& state) {
  const Large of;
  for (auto _ : state)
    benchmark::DoNotOptimize(training_memory(of.model, of.job, of.layout, of.stack));
}
BENCHMARK(memory);

// Target: a few microseconds.
void least(benchmark::State& state) {
  const Large of;
  StepSeries series(of.context, of.model, of.job, of.layout, of.stack);
  for (auto _ : state) benchmark::DoNotOptimize(series.least(of.layout));
}
BENCHMARK(least);

// Target: tens of nanoseconds.
void bound(benchmark::State& state) {
  const Large of;
  const StepBound of_layouts(of.context, of.model, of.job, of.stack, of.layout);
  for (auto _ : state) benchmark::DoNotOptimize(of_layouts(of.layout));
}
BENCHMARK(bound);

// Target: microseconds, whatever the number of accelerators.
void goodput_of_job(benchmark::State& state) {
  GoodputCase input = plain_case(10800, 5, 300);
  input.gpus = state.range(0);
  input.units.count = state.range(0) / 8;
  input.spares = 4;
  for (auto _ : state) benchmark::DoNotOptimize(goodput(input));
}
BENCHMARK(goodput_of_job)->ArgName("gpus")->Arg(1024)->Arg(131072);

// Targets: a millisecond with the manifest of a build, ten without.
void hash_of_catalogues(benchmark::State& state) {
  const CatalogueManifest known =
      state.range(0) != 0 ? catalogue_manifest(data_root()) : CatalogueManifest{};
  for (auto _ : state)
    benchmark::DoNotOptimize(catalogue_hash(catalogue_manifest(data_root(), known)));
}
BENCHMARK(hash_of_catalogues)->ArgName("known")->Arg(1)->Arg(0)->Unit(benchmark::kMicrosecond);

}  // namespace
