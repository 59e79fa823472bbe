// SPDX-License-Identifier: Apache-2.0
// Counts what a serving engine keeps on each GPU, and how many blocks of keys and values fit
// beside.
#pragma once

#include <cstdint>
#include <string>

#include "sim/engine/cluster.h"
#include "sim/engine/serving/rank.h"
#include "workloads/inference/drafter.h"
#include "workloads/inference/engine_layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Of the GPU that has most of each. States and windows of a sequence are taken from the same memory
// as keys and values when it starts, as vLLM's cache manager does (vllm/v1/core/
// kv_cache_coordinator.py: layers of all kinds share a pool of pages).
struct EngineMemory {
  Bytes capacity;         // of the device
  Bytes weights;          // of the model
  Bytes workspace;        // of a step with as many rows as the engine takes
  Bytes outside;          // that the engine's allocator does not see
  Bytes cache;            // for keys and values
  Bytes token;            // keys and values of a token, of a drafter's too
  Bytes drafter;          // of the weights, those of the network that guesses tokens
  Bytes state;            // of a sequence beside its tokens: states of scans, keys of full windows
  SequenceBlocks beside;  // the same as blocks
  std::int64_t blocks = 0;     // of all memory for keys and values
  std::int64_t sequences = 0;  // that may run on a rank: the policy's, or as many as have states
  std::string refusal;         // why nothing can be served, in one sentence; empty: it can
};

EngineMemory engine_memory(const Cluster& cluster, const Model& model, const EngineLayout& layout,
                           const Stack& stack, const Drafter* drafter = nullptr);

}  // namespace orrery
