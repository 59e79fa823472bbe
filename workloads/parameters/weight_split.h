// SPDX-License-Identifier: Apache-2.0
// Knows over how many ranks vocabulary tables are split and each kind of parameter is sharded, and
// for how long ZeRO-3 keeps whole what it shards.
#pragma once

#include <cstdint>

#include "workloads/layout/layout.h"
#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {

// Parts of the embedding table and of the head, one on each rank of tensor parallelism; 1: whole.
inline std::int64_t vocabulary_ways(const Stack& stack, const Layout& layout) {
  return stack.sharding.splits_vocabulary ? layout.tp : 1;
}

// Rows of the embedding table and of the head on one of these parts, filled up as the program does;
// where nothing is filled up the largest part. A multiple of 0: the rest is cut off, as a model
// that is only profiled may (vTrain's).
inline std::int64_t local_vocabulary(const Model& model, const Stack& stack, const Layout& layout) {
  if (stack.sharding.vocabulary_multiple == 0) return model.vocab / vocabulary_ways(stack, layout);
  const std::int64_t multiple = stack.sharding.vocabulary_multiple * vocabulary_ways(stack, layout);
  return (model.vocab + multiple - 1) / multiple * stack.sharding.vocabulary_multiple;
}
// Elements of a part of either table.
inline double vocabulary_parameters(const Model& model, const Stack& stack, const Layout& layout) {
  return static_cast<double>(local_vocabulary(model, stack, layout)) *
         static_cast<double>(model.hidden);
}

// Ranks that share one copy of what a ZeRO stage shards, and how many such copies there are.
struct ShardWays {
  std::int64_t dense = 1, expert = 1;
  std::int64_t dense_copies = 1, expert_copies = 1;
};
// Hybrid sharding makes as many copies of the experts as of all else, inside which their replicas
// share: Megatron-Core's distributed optimizer instances (core/parallel_state.py: expert data
// parallelism over the instances) and FSDP's replicated meshes are alike in that. Where experts
// have too few replicas for so many copies, there are as many as divide both.
ShardWays shard_ways(const Layout& layout);

// ZeRO-3: gradients stay whole from a step's first microbatch to its last and are reduced once; the
// second says whether parameters stay whole with them, gathered once. PyTorch's pipelines always do
// both.
bool accumulates_whole(const Layout& layout, const Stack& stack, std::int64_t microbatches);
bool gathers_once(const Layout& layout, const Stack& stack, std::int64_t microbatches);

}  // namespace orrery
