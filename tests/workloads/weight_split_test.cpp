// SPDX-License-Identifier: Apache-2.0
// Holds the shares of parameters against the ranks that hold them, for dense parts and experts.
#include "workloads/parameters/weight_split.h"

#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "tests/base/fresh_seed.h"
#include "workloads/memory/memory.h"
#include "workloads/model/model_catalog.h"

namespace orrery {
namespace {

std::filesystem::path catalog(const std::string& kind) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "workloads/catalog" / kind;
}

}  // namespace

TEST_CASE("shards and their copies are all replicas, of experts as of the rest") {
  RandomStream random(fresh(31), 1);
  const auto size = [&](int most) {
    return static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(most)));
  };
  for (int i = 0; i < 2000; ++i) {
    Layout l = {.tp = size(8), .dp = size(64), .cp = size(4), .ep = size(16), .etp = size(4)};
    if (l.tp * l.dp * l.cp % (l.ep * l.etp) != 0) continue;
    if (random.below(2) == 0) l.shard_group = size(64);
    if (l.shard_group > 0 && l.dp * l.cp % l.shard_group != 0) continue;
    const ShardWays ways = shard_ways(l);
    CHECK(ways.dense * ways.dense_copies == l.dense_replicas());
    CHECK(ways.expert * ways.expert_copies == l.expert_replicas());
    CHECK(ways.dense_copies % ways.expert_copies == 0);
    if (l.shard_group > 0) CHECK(ways.dense == l.shard_group);
    if (l.shard_group == 0) CHECK(ways.dense_copies == 1);
    if (ways.dense_copies == 1) CHECK(ways.expert_copies == 1);
  }
  // Megatron-Core's four optimizer instances of 64 ranks, 8 of which hold other experts.
  const ShardWays four = shard_ways({.dp = 64, .ep = 8, .shard_group = 16});
  CHECK(four.dense_copies == 4);
  CHECK(four.expert_copies == 4);
  CHECK(four.expert == 2);
}

TEST_CASE("shard groups hold experts' states over the groups' own replicas") {
  const Model model = load_model("mixtral-8x7b", catalog("models"));
  const Stack stack = load_stack("megatron-core", {.moe = true}, catalog("stacks"));
  const Job job = {.sequence = 4096, .global_batch = 64};
  const auto optimizer = [&](std::int64_t group, std::int64_t ep) {
    const Layout layout = {.dp = 64, .ep = ep, .zero_stage = 1, .shard_group = group};
    return training_memory(model, job, layout, stack)[0][MemoryCategory::optimizer].si();
  };
  // Of a quarter of the ranks everything is four times as much.
  CHECK(optimizer(16, 8) == Approx(4 * optimizer(0, 8)));
  CHECK(optimizer(8, 4) == Approx(8 * optimizer(0, 4)));
}

TEST_CASE("tables are split over tensor parallelism where the stack splits them") {
  Stack stack;
  const Layout layout = {.tp = 8};
  CHECK(vocabulary_ways(stack, layout) == 8);
  stack.sharding.splits_vocabulary = false;
  CHECK(vocabulary_ways(stack, layout) == 1);
}

}  // namespace orrery
