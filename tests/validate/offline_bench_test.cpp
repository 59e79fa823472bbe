// SPDX-License-Identifier: Apache-2.0
// Tests the limits that TensorRT-LLM's own benchmark chooses, and rows that it measured.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "hw_models/catalog.h"
#include "sim/validate/rows/aliases.h"
#include "sim/validate/served/served_gates.h"
#include "sim/validate/serving/offline_bench.h"
#include "sim/validate/serving/serving_recipes.h"
#include "sim/validate/serving/serving_rows.h"
#include "workloads/model/model_catalog.h"

using namespace orrery;

namespace {

OfflineBench shipped_bench() {
  return load_serving_recipes(data_root() / "validation/serving_recipes.json")
      .tables.at("overview")
      .bench;
}

OfflineLimits limits_of(const std::string& model, double memory, std::int64_t gpus,
                        double weight_bytes, double prompt, double output) {
  const ServingLoad load{.prompt_tokens = prompt, .output_tokens = output};
  return offline_limits(shipped_bench(),
                        load_model(model, data_root() / "workloads/catalog/models"),
                        gibibytes(memory), gpus, weight_bytes, load);
}

// Sizes that a list of captured graphs holds.
std::vector<std::int64_t> sizes_of(const std::vector<GraphSizes>& graphs) {
  std::vector<std::int64_t> sizes;
  std::int64_t from = 0;
  for (const GraphSizes& g : graphs) {
    for (std::int64_t size = from + g.by; size <= g.to; size += g.by) sizes.push_back(size);
    from = g.to;
  }
  return sizes;
}

TEST_CASE("the benchmark's limits: what the cache holds, rounded up") {
  // Qwen3 30B: 30.5e9 parameters; a token takes 48 layers x 4 heads x 256 bytes = 49,152 bytes.
  // (180 GiB - 15.3 GB) x 0.95 / 49,152 / 2,000 = 1,720 requests, up to a multiple of 256.
  const OfflineLimits even = limits_of("qwen3-30b-a3b", 180, 1, 0.5, 1000, 1000);
  CHECK(even.sequences == 1792);
  CHECK(even.tokens == 3584);  // 1,720 x (1 + 1), up to a multiple of 256
  // Many short answers: at most 4,096 at once, and 32,768 tokens of a step.
  const OfflineLimits most = limits_of("qwen3-30b-a3b", 180, 1, 0.5, 128, 128);
  CHECK(most.sequences == 4096);
  CHECK(most.tokens == 8192);
  // 1,581 requests x (1 + 2,048 / 128), up to a multiple of 1,024; with less than that at most.
  CHECK(limits_of("qwen3-30b-a3b", 180, 1, 0.5, 2048, 128).tokens == 27648);
  CHECK(limits_of("qwen3-30b-a3b", 1000, 1, 0.5, 2048, 128).tokens == 32768);
  // A prompt is whole, and fits beside the others.
  const OfflineLimits whole = limits_of("qwen3-30b-a3b", 180, 1, 0.5, 2048, 2048);
  CHECK(whole.tokens == 2048 + whole.sequences);
  // Weights that fill the memory leave the least that it ever asks for.
  CHECK(limits_of("llama3.3-70b", 80, 1, 1, 20000, 2000).sequences == 64);
}

TEST_CASE("requests of a run go by its lengths, else by the nearest") {
  const OfflineBench bench = shipped_bench();
  CHECK(bench.count_of(128, 128) == 30000);
  CHECK(bench.count_of(1024, 32768) == 1000);
  CHECK(bench.count_of(1000, 1100) == 3000);
  CHECK(OfflineBench{}.count_of(128, 128) == 0);
}

TEST_CASE("graphs are captured up to the most sequences, which are one of them") {
  const std::vector<GraphSizes> graphs = shipped_bench().graphs;
  CHECK(sizes_of(graphs_up_to(graphs, 600)) ==
        std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 600});
  CHECK(sizes_of(graphs_up_to(graphs, 384)).back() == 384);
  for (const std::int64_t most : {1, 3, 64, 65, 1000, 1792, 4096}) {
    INFO(most);
    const auto sizes = sizes_of(graphs_up_to(graphs, most));
    CHECK(sizes.back() == most);
    CHECK(std::is_sorted(sizes.begin(), sizes.end()));
  }
}

TEST_CASE("rows of the benchmark have its protocol, layout and formats") {
  const auto rows = shipped_serving_rows(load_aliases(data_root() / "validation/aliases.json"));
  int attention_dp = 0;
  for (const ServingRow& row : rows) {
    if (!row.id.starts_with("trtllm_perf_overview:")) continue;
    INFO(row.id << " " << row.model << " on " << row.gpu);
    CHECK_FALSE(row.load.concurrency);
    CHECK(row.load.prompts >= 1000);
    CHECK(row.engine.limits.memory_share == 0.95);
    CHECK(row.engine.limits.graphs.back().to == row.engine.limits.max_sequences);
    if (row.family != "llama4-maverick") continue;
    // "TP8" of a model with experts is attention DP on eight ranks.
    CHECK(row.engine.layout.attention_dp == row.engine.layout.gpus());
    CHECK(row.engine.layout.ep == row.engine.layout.gpus());
    CHECK(row.engine.layout.cache == (row.precision == "fp8" ? Format::bf16 : Format::fp8));
    ++attention_dp;
  }
  CHECK(attention_dp == 42);
}

TEST_CASE("experts of NVFP4 run as the script's backend says") {
  const auto rows = shipped_serving_rows(load_aliases(data_root() / "validation/aliases.json"));
  int generated = 0, cutlass = 0;
  for (const ServingRow& row : rows) {
    if (!row.rule.empty() || !row.software.stack.starts_with("trtllm") || row.precision != "fp4" ||
        row.family != "deepseek-v3" || row.campaign != "inferencex")
      continue;
    INFO(row.id);
    const auto& library = row.engine.limits.grouped_gemm;
    const bool dp = row.engine.layout.attention_dp > 1;
    CHECK(library.has_value() != dp);
    if (library) CHECK(*library == Library::flashinfer);
    ++(dp ? cutlass : generated);
    if (row.disaggregated) CHECK(row.prefill.limits.grouped_gemm == Library::flashinfer);
  }
  CHECK(generated > 20);
  CHECK(cutlass > 20);
}

}  // namespace
