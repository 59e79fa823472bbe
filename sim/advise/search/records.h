// SPDX-License-Identifier: Apache-2.0
// Knows the members of what a search finds, as results of tasks keep them.
#pragma once

#include "sim/advise/search/search.h"
#include "sim/base/tasks/record.h"
#include "workloads/layout/layout_record.h"

namespace orrery {

auto fields(EitherConst<Candidate> auto& c) {
  auto& [layout, step_time, energy_per_step, peak_memory, tokens_per_second_per_gpu] = c;
  return std::tie(layout, step_time, energy_per_step, peak_memory, tokens_per_second_per_gpu);
}

auto fields(EitherConst<GridPoint> auto& p) {
  auto& [micro_batch, sequence_parallel, exchange, recompute, shard, rank, pipeline, offload, zero,
         bucket] = p;
  return std::tie(micro_batch, sequence_parallel, exchange, recompute, shard, rank, pipeline,
                  offload, zero, bucket);
}

auto fields(EitherConst<Place> auto& p) {
  auto& [recipe, family, point] = p;
  return std::tie(recipe, family, point);
}

auto fields(EitherConst<Found> auto& f) {
  auto& [candidate, place, score] = f;
  return std::tie(candidate, place, score);
}

auto fields(EitherConst<FamilyOutcome> auto& f) {
  auto& [leaves, rejected, pruned, simulated, best, first] = f;
  return std::tie(leaves, rejected, pruned, simulated, best, first);
}
}  // namespace orrery
