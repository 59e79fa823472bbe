// SPDX-License-Identifier: Apache-2.0
// Measures the pipeline executor: typical and large layouts, even and uneven stages.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "sim/base/random.h"
#include "sim/engine/pipeline/run.h"

namespace {

using namespace orrery;

// Layers cost the same within `noise` (relative); the first position adds the embedding, the last
// the output head.
PipelineCosts layered_costs(const PipelineShape& shape, double noise, bool ends) {
  RandomStream random(7, 0);
  const auto about = [&](std::int64_t time) {
    return Ticks{time +
                 static_cast<std::int64_t>(noise * random.uniform() * static_cast<double>(time))};
  };
  PipelineCosts costs;
  const std::int64_t positions = shape.stages * chunks_per_stage(shape);
  for (std::int64_t i = 0; i < positions; ++i)
    costs.chunk.push_back({about(9000000000), about(19000000000), about(9500000000),
                           about(9500000000), about(300000000), about(300000000)});
  if (ends) {
    costs.chunk.front().forward += Ticks{25000000};
    costs.chunk.front().backward += Ticks{40000000};
    ChunkCost& last = costs.chunk.back();
    last.forward += Ticks{4000000000};
    last.backward += Ticks{8000000000};
    last.input_gradient += Ticks{4000000000};
    last.weight_gradient += Ticks{4000000000};
  }
  return costs;
}

void report(benchmark::State& state, const PipelineShape& shape, const PipelineCosts& costs) {
  PipelineRun run;
  for (auto _ : state) {
    run = run_pipeline(shape, costs);
    benchmark::DoNotOptimize(run.end);
  }
  state.counters["passes_run"] = static_cast<double>(run.passes_run);
  state.counters["passes_skipped"] = static_cast<double>(run.passes_skipped);
}

// Arguments: schedule, stages, chunks, microbatches, kind of costs.
void layout(benchmark::State& state) {
  const PipelineShape shape{static_cast<Schedule>(state.range(0)), state.range(1), state.range(2),
                            state.range(3)};
  const std::int64_t kind = state.range(4);
  const double noise = kind == 2 ? 1e-3 : kind == 3 ? 0.3 : 0;
  report(state, shape, layered_costs(shape, noise, kind == 1));
}

void layouts(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"schedule", "pp", "vpp", "m", "costs"})->Unit(benchmark::kMicrosecond);
  for (std::int64_t kind : {0, 1, 2, 3}) {
    bench->Args({2, 8, 4, 128, kind});
    bench->Args({2, 16, 8, 4096, kind});
    bench->Args({2, 128, 8, 1024, kind});
    bench->Args({1, 16, 1, 256, kind});
    bench->Args({1, 128, 1, 4096, kind});
    bench->Args({0, 16, 1, 4096, kind});
    bench->Args({3, 16, 1, 4096, kind});
    bench->Args({4, 16, 1, 4096, kind});
    bench->Args({4, 128, 1, 4096, kind});
  }
}
BENCHMARK(layout)->Apply(layouts);

// A thousand random layouts with up to 128 stages, 8 chunks and 4,096 microbatches; `worst_us` is
// the slowest of them.
void random_layouts(benchmark::State& state) {
  RandomStream random(8, 0);
  std::vector<std::pair<PipelineShape, PipelineCosts>> cases;
  while (cases.size() < 1000) {
    PipelineShape shape{static_cast<Schedule>(random.below(5)), std::int64_t{1} << random.below(8),
                        1, std::int64_t{1} << random.below(13)};
    if (shape.schedule == Schedule::interleaved) shape.chunks = std::int64_t{1} << random.below(4);
    if (invalid_shape(shape)) continue;
    const double noise = random.below(2) == 0 ? 0 : random.uniform() * random.uniform() * 0.3;
    cases.emplace_back(shape, layered_costs(shape, noise, random.below(4) != 0));
  }
  double worst = 0;
  for (auto _ : state) {
    for (const auto& [shape, costs] : cases) {
      const auto start = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(run_pipeline(shape, costs).end);
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - start;
      worst = std::max(worst, took.count());
    }
  }
  state.counters["worst_us"] = worst;
  state.counters["mean"] = benchmark::Counter(
      1000, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(random_layouts)->Unit(benchmark::kMillisecond);

void trace(benchmark::State& state) {
  const PipelineShape shape{Schedule::interleaved, 16, 8, 128};
  const PipelineCosts costs = layered_costs(shape, 0, true);
  for (auto _ : state) benchmark::DoNotOptimize(trace_pipeline(shape, costs).size());
  state.SetItemsProcessed(state.iterations() * 2 * 16 * 8 * 128);
}
BENCHMARK(trace)->Unit(benchmark::kMillisecond);

}  // namespace
