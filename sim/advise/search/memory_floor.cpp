// SPDX-License-Identifier: Apache-2.0
// Holds the most frugal layouts of a part of the grid against the device.
#include "sim/advise/search/memory_floor.h"

#include <algorithm>

#include "sim/advise/search/pipeline_floor.h"
#include "sim/engine/memory_fit.h"

namespace orrery {

std::vector<std::int32_t> shards_like(const Family& family, std::int32_t first) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < choices(family.shards); ++i)
    if (shards_all(choice(family.shards, i)) == shards_all(choice(family.shards, first)))
      all.push_back(i);
  return all;
}

// The fullest stage has the mean at least.
Bytes least_static(const SearchGround& ground, const Place& place) {
  const Family& family = ground.family(place);
  Bytes least(infinite);
  for (std::int32_t shard = 0; shard < choices(family.shards); ++shard) {
    GridPoint p;
    p.shard = shard;
    p.zero = choices(choice(family.shards, shard).zero_stages) - 1;
    p.offload = choices(family.offloads) - 1;
    const auto stages =
        training_memory(ground.model, ground.job, family.layout(p), ground.recipe(place).stack);
    Bytes sum;
    for (const StageMemory& s : stages)
      sum += s[MemoryCategory::parameters] + s[MemoryCategory::gradients] +
             s[MemoryCategory::optimizer];
    least = std::min(least, sum / static_cast<double>(stages.size()));
  }
  return least;
}

bool all_too_large(const SearchGround& ground, const Place& place) {
  const Family& family = ground.family(place);
  // On the accelerator: what a host cannot hold, it may hold a part of.
  const auto fits_alone = [&](const GridPoint& p) {
    return accelerator_fits(ground.model, ground.job, family.layout(p), ground.recipe(place).stack,
                            ground.device);
  };
  GridPoint p = place.point;
  const auto& pipelines = choice(family.micro_batches, p.micro_batch).pipelines;
  const bool plain =
      pipelines.front().vpp == 1 && choice(family.recomputes, p.recompute).layers == 0;
  for (const std::int32_t shard : shards_like(family, p.shard)) {
    p.shard = shard;
    const ShardOption& option = choice(family.shards, shard);
    p.zero = choices(option.zero_stages) - 1;
    // Of buckets that can be chosen the smallest.
    p.bucket = choices(option.buckets) > 1 ? 1 : 0;
    for (p.pipeline = 0; p.pipeline < choices(pipelines); ++p.pipeline) {
      // Interleaving holds more microbatches than 1F1B, on stages that 1F1B has as well. Where some
      // layers alone run again, how they fall on chunks decides.
      if (plain && loops_over_chunks(choice(pipelines, p.pipeline).schedule)) continue;
      for (const std::int32_t offload : {choices(family.offloads) - 1, 0}) {
        p.offload = offload;
        if (fits_alone(p)) return false;
      }
    }
  }
  return true;
}

}  // namespace orrery
