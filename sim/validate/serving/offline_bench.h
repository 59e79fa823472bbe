// SPDX-License-Identifier: Apache-2.0
// Knows how TensorRT-LLM's own benchmark runs: how many requests, and the limits that it chooses.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units/units.h"
#include "sim/validate/serving/serving_row.h"
#include "workloads/model/model.h"
#include "workloads/stack/serving.h"

namespace orrery {

// trtllm-bench throughput: all requests are there from the start.
struct OfflineBench {
  struct Requests {
    std::int64_t prompt = 0, output = 0, count = 0;  // tokens, tokens, requests of the run
  };
  std::vector<Requests> requests;
  double memory_share = 0.9;        // of what weights and workspace leave, for the cache
  std::vector<GraphSizes> graphs;   // captured, up to the most sequences
  std::int64_t most_sequences = 0;  // that it ever asks an engine for
  std::int64_t most_tokens = 0;     // of a step, likewise
  bool empty() const { return requests.empty(); }
  // Of prompts and outputs of so many tokens; those of the nearest total where none are equal.
  std::int64_t count_of(double prompt, double output) const;
};

struct OfflineLimits {
  std::int64_t sequences = 0, tokens = 0;  // at once on a rank; of a step
};

// Captured sizes up to the most sequences, which are captured too.
std::vector<GraphSizes> graphs_up_to(const std::vector<GraphSizes>& sizes, std::int64_t most);

// The benchmark's limits: how many requests of these lengths the cache holds when weights have
// `weight_bytes` a parameter and keys one byte an element, rounded up
// (tensorrt_llm/bench/build/tuning.py, benchmark/utils/general.py). `memory`: of one device;
// `gpus`: of the engine.
OfflineLimits offline_limits(const OfflineBench& bench, const Model& model, Bytes memory,
                             std::int64_t gpus, double weight_bytes, const ServingLoad& load);

}  // namespace orrery
