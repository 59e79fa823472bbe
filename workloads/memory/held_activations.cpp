// SPDX-License-Identifier: Apache-2.0
// Follows a stage's schedule to the moment that holds most.
#include "workloads/memory/held_activations.h"

#include <algorithm>

namespace orrery {
namespace {

double sum(const Kept& k) {
  double total = 0;
  for (double v : k) total += v;
  return total;
}

void take(Held& held, const Kept& now) {
  for (std::size_t i = 0; i < now.size(); ++i) held.worst[i] = std::max(held.worst[i], now[i]);
  held.worst_sum = std::max(held.worst_sum, sum(now));
}

// Interleaved: forward f has chunk f / pp mod v and backward b chunk v - 1 - b / pp mod v. After n
// warm-up forwards each forward goes with one backward, so what is held changes linearly between
// the points where either of them enters another chunk, and repeats after pp * v of them.
Held held_interleaved(const PipelineShape& shape, const std::vector<Kept>& chunks, std::int64_t n) {
  const std::int64_t pp = shape.stages, v = shape.chunks, period = pp * v;
  const std::int64_t end = std::min(n + period, shape.microbatches * v);
  const auto kept = [&](std::int64_t run) -> const Kept& {
    return chunks[static_cast<std::size_t>(run % v)];
  };
  Kept now{};
  const auto add = [&](std::int64_t count, const Kept& chunk) {
    for (std::size_t i = 0; i < now.size(); ++i) now[i] += static_cast<double>(count) * chunk[i];
  };
  Held held;
  std::int64_t f = 0, forward_run = 0;
  for (; (forward_run + 1) * pp <= n; f += pp) add(pp, kept(forward_run++));
  add(n - f, kept(forward_run));
  take(held, now);
  std::int64_t backward_run = 0;
  for (f = n; f < end;) {
    const std::int64_t forward_left = (forward_run + 1) * pp - f;
    const std::int64_t backward_left = (backward_run + 1) * pp - (f - n);
    const std::int64_t step = std::min({forward_left, backward_left, end - f});
    add(step, kept(forward_run));
    add(-step, kept(v - 1 - backward_run % v));
    take(held, now);
    f += step;
    if (step == forward_left) ++forward_run;
    if (step == backward_left) ++backward_run;
  }
  return held;
}

}  // namespace

Held held_activations(const PipelineShape& shape, const std::vector<Kept>& chunks,
                      std::int64_t index, std::int64_t n) {
  Held held;
  const bool equal =
      std::all_of(chunks.begin(), chunks.end(), [&](const Kept& k) { return k == chunks.front(); });
  if (!equal && loops_over_chunks(effective_schedule(shape)) &&
      shape.microbatches % shape.stages == 0)
    return held_interleaved(shape, chunks, n);
  if (chunks.size() == 2 && holds_two_chunks(shape.schedule)) {
    for (const ChunksHeld& moment : worst_held(shape, index)) {
      Kept now{};
      for (std::size_t i = 0; i < now.size(); ++i)
        now[i] = static_cast<double>(moment.first) * chunks[0][i] +
                 static_cast<double>(moment.second) * chunks[1][i];
      take(held, now);
    }
    return held;
  }
  for (const Kept& kept : chunks) {
    Kept now = kept;
    for (double& value : now) value *= static_cast<double>(n);
    take(held, now);
  }
  return held;
}

}  // namespace orrery
