// Tries a few layouts of a family.
#include "sim/advise/attempt.h"

#include "sim/engine/memory_fit.h"

namespace orrery {
namespace {

template <class T>
std::int32_t count(const std::vector<T>& list) {
  return static_cast<std::int32_t>(list.size());
}

double tokens_per_step(const Job& job) {
  return static_cast<double>(job.global_batch) * static_cast<double>(job.sequence);
}

}  // namespace

std::optional<Found> attempt(const SearchGround& ground, const Place& family) {
  Place at = family;
  const Family& f = ground.family(at);
  std::optional<Found> best;
  const auto& pipelines = f.micro_batches.front().pipelines;
  for (at.point.shard = 0; at.point.shard < count(f.shards); ++at.point.shard) {
    const ShardOption& shard = f.shards[static_cast<std::size_t>(at.point.shard)];
    at.point.zero = count(shard.zero_stages) - 1;
    for (const std::int32_t pipeline : {0, count(pipelines) - 1}) {
      at.point.pipeline = pipeline;
      for (at.point.recompute = 0; at.point.recompute < count(f.recomputes); ++at.point.recompute) {
        const Layout layout = f.layout(at.point);
        if (!memory_fits(ground.model, ground.job, layout, ground.recipe(at).stack, ground.device))
          continue;
        const StepResult run =
            step(ground.context, ground.model, ground.job, layout, ground.recipe(at).stack);
        Found found{.candidate = {.layout = layout,
                                  .step_time = to_seconds(run.step),
                                  .energy_per_step =
                                      run.energy_per_gpu * static_cast<double>(layout.gpus())},
                    .place = at};
        found.candidate.peak_memory =
            memory_fit(ground.model, ground.job, layout, ground.recipe(at).stack, ground.device)
                .peak;
        found.candidate.tokens_per_second_per_gpu = tokens_per_step(ground.job) /
                                                    found.candidate.step_time.si() /
                                                    static_cast<double>(layout.gpus());
        found.score = score(ground, found.candidate.step_time, found.candidate.energy_per_step);
        if (!best || better(found, *best)) best = std::move(found);
        break;
      }
    }
  }
  return best;
}

}  // namespace orrery
