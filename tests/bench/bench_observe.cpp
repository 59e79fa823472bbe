// SPDX-License-Identifier: Apache-2.0
// Times the readers of what a run says of itself; traces that big_trace.py makes come by
// $ORRERY_TRACE.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "sim/observe/observed.h"

namespace {

using namespace orrery::observe;

// Only where there is one to read.
const bool has_trace = [] {
  const char* file = std::getenv("ORRERY_TRACE");
  if (file == nullptr) return false;
  benchmark::RegisterBenchmark("trace_of_file",
                               [file](benchmark::State& state) {
                                 for (auto _ : state) benchmark::DoNotOptimize(read_kineto(file));
                               })
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  return true;
}();

// Target: a tenth of a second for four megabytes of JSON.
void small_trace(benchmark::State& state) {
  benchmark::DoNotOptimize(has_trace);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        read_observed(ORRERY_SOURCE_DIR "/tests/observe/files/kineto_bf16.json.gz"));
}
BENCHMARK(small_trace)->Unit(benchmark::kMillisecond);

}  // namespace
