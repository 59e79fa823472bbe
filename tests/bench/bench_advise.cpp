// Measures whole-space advice for 512 GPUs: the target is under 60 s on two cores.
#include <benchmark/benchmark.h>

#include "hw_models/catalog.h"
#include "sim/advise/advisor.h"

namespace {

using namespace orrery;

Question question(const char* model, std::int64_t sequence, std::int64_t batch) {
  Question q;
  q.cluster = load_cluster("dgx-h100", 512);
  q.model = read_model(load_catalog_entry("workloads/catalog/models", "model", model));
  q.job.sequence = sequence;
  q.job.global_batch = batch;
  q.stack_name = "megatron-core";
  return q;
}

void advise_512(benchmark::State& state, const Question& q, bool prune) {
  Advice advice;
  AdviseOptions options;
  options.threads = 2;
  options.prune = prune;
  for (auto _ : state) advice = advise(q, options);
  state.counters["considered"] = static_cast<double>(advice.considered);
  state.counters["invalid"] = static_cast<double>(advice.invalid);
  state.counters["rejected"] = static_cast<double>(advice.rejected_for_memory);
  state.counters["pruned"] = static_cast<double>(advice.pruned);
  state.counters["simulated"] = static_cast<double>(advice.simulated);
}

void llama_405b(benchmark::State& state) {
  advise_512(state, question("llama3.1-405b", 8192, 512), state.range(0) != 0);
}
BENCHMARK(llama_405b)->ArgName("prune")->Arg(1)->Arg(0)->Unit(benchmark::kSecond)->UseRealTime();

void deepseek_v3(benchmark::State& state) {
  advise_512(state, question("deepseek-v3", 4096, 4096), state.range(0) != 0);
}
BENCHMARK(deepseek_v3)->ArgName("prune")->Arg(1)->Arg(0)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
