// SPDX-License-Identifier: Apache-2.0
// Tries a few layouts of a family.
#include "sim/advise/search/attempt.h"

#include "sim/engine/memory_fit.h"
#include "sim/engine/step/step.h"

namespace orrery {
std::optional<Found> attempt(const SearchGround& ground, const Place& family) {
  Place at = family;
  const Family& f = ground.family(at);
  std::optional<Found> best;
  const auto& pipelines = f.micro_batches.front().pipelines;
  for (at.point.shard = 0; at.point.shard < choices(f.shards); ++at.point.shard) {
    const ShardOption& shard = choice(f.shards, at.point.shard);
    at.point.zero = choices(shard.zero_stages) - 1;
    for (const std::int32_t pipeline : {0, choices(pipelines) - 1}) {
      at.point.pipeline = pipeline;
      for (at.point.recompute = 0; at.point.recompute < choices(f.recomputes);
           ++at.point.recompute) {
        const Layout layout = f.layout(at.point);
        if (!memory_fits(ground.model, ground.job, layout, ground.recipe(at).stack, ground.device))
          continue;
        Found found = found_of(
            ground, at, layout,
            step(ground.context, ground.model, ground.job, layout, ground.recipe(at).stack));
        if (!best || better(found, *best)) best = std::move(found);
        break;
      }
    }
  }
  return best;
}

}  // namespace orrery
