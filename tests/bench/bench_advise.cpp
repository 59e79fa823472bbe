// SPDX-License-Identifier: Apache-2.0
// Measures whole searches: layouts disposed of per second and core, and bounds of single layouts.
#include <benchmark/benchmark.h>

#include <chrono>

#include "hw_models/catalog.h"
#include "sim/advise/advisor.h"
#include "sim/advise/search/bound.h"
#include "sim/base/parallel.h"
#include "workloads/model/model_catalog.h"

namespace {

using namespace orrery;

struct Asked {
  const char* model;
  const char* cluster;
  std::int64_t gpus, sequence, batch;
  const char* stack = "megatron-core";
  bool all_recipes = false;
};

Question question(const Asked& a) {
  Question q;
  q.cluster = load_cluster(a.cluster, a.gpus);
  q.model = load_model(a.model, data_root() / "workloads/catalog/models");
  q.job.sequence = a.sequence;
  q.job.global_batch = a.batch;
  q.stack_name = a.stack;
  if (!a.all_recipes) return q;
  q.precisions = {PrecisionRecipe::bf16, PrecisionRecipe::fp8_delayed, PrecisionRecipe::fp8_current,
                  PrecisionRecipe::fp8_blockwise};
  for (int o = 0; o <= static_cast<int>(Optimizer::rotating_adam); ++o)
    q.optimizers.push_back(static_cast<Optimizer>(o));
  return q;
}

// Targets: Llama 405B on 16,384 H100 under 10 s, GPT-3 on 64 under 3 s, 10^7 layouts per second and
// core where the grid is that large.
void searched(benchmark::State& state, const Asked& asked) {
  const Question q = question(asked);
  AdviseOptions options;
  options.threads = 2;
  Advice advice;
  std::chrono::duration<double> used{};
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    advice = advise(q, options);
    used += std::chrono::steady_clock::now() - start;
  }
  const double seconds = used.count() / static_cast<double>(state.iterations());
  state.counters["considered"] = static_cast<double>(advice.considered);
  state.counters["rejected"] = static_cast<double>(advice.rejected_for_memory);
  state.counters["pruned"] = static_cast<double>(advice.pruned);
  state.counters["simulated"] = static_cast<double>(advice.simulated);
  state.counters["per_s_core"] =
      static_cast<double>(advice.considered) / seconds / std::min(2, hardware_threads());
}
BENCHMARK_CAPTURE(searched, gpt3_64_h100, Asked{"gpt3-175b", "dgx-h100", 64, 2048, 64})
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(searched, llama_405b_16384_h100,
                  Asked{"llama3.1-405b", "dgx-h100", 16384, 8192, 2048})
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(searched, llama_405b_16384_h100_all_recipes,
                  Asked{"llama3.1-405b", "dgx-h100", 16384, 8192, 2048, "megatron-core", true})
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(searched, deepseek_v3_2048_h100,
                  Asked{"deepseek-v3", "dgx-h100", 2048, 4096, 15360, "nemo"})
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(searched, moe_100t_131072_gb300,
                  Asked{"100t-moe", "gb300-nvl72", 131072, 8192, 16384, "nemo"})
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// One layout after the other, none of them left out: its place in the grid and its bound.
// Target: 10^6 per second and core.
void bounds_one_by_one(benchmark::State& state) {
  const Question q = question({"llama3.1-405b", "dgx-h100", 16384, 8192, 2048});
  const Stack stack = load_stack(
      q.stack_name, {.architecture = "hopper", .device = q.cluster.device.name, .family = "llama3"},
      data_root() / "workloads/catalog/stacks");
  const SearchSpace space({.model = q.model,
                           .job = q.job,
                           .fabric = q.cluster.fabric,
                           .stack = stack,
                           .gpus = q.cluster.gpus},
                          {});
  const StepContext context = step_context(q.cluster);
  const StepBound bound(context, q.model, q.job, stack, {});
  std::int64_t count = 0;
  for (auto _ : state) {
    Seconds least;
    for (const Family& family : space.families()) {
      GridPoint point;
      do {
        least += bound(family.layout(point));
        ++count;
      } while (advance(family, point));
    }
    benchmark::DoNotOptimize(least);
  }
  state.counters["per_s_core"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
}
BENCHMARK(bounds_one_by_one)->Unit(benchmark::kSecond);

}  // namespace
