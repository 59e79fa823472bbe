// SPDX-License-Identifier: Apache-2.0
// Knows how to draw random valid layouts for property tests.
#pragma once

#include <vector>

#include "sim/base/random.h"
#include "workloads/layout/layout.h"

namespace orrery::test {

// Draws until a layout is valid for the model, the job and exactly `gpus` accelerators.
inline Layout random_layout(RandomStream& random, const Model& model, const Job& job,
                            std::int64_t gpus) {
  const auto power = [&](int most) {
    return std::int64_t{1} << random.below(static_cast<std::uint64_t>(most) + 1);
  };
  for (;;) {
    Layout l;
    l.tp = power(3);
    l.pp = power(4);
    l.cp = random.below(4) == 0 ? 2 : 1;
    if (gpus % (l.tp * l.pp * l.cp) != 0) continue;
    l.dp = gpus / (l.tp * l.pp * l.cp);
    l.micro_batch = power(2);
    l.zero_stage = static_cast<int>(random.below(4));
    l.sequence_parallel = random.below(2) == 0;
    l.recompute = static_cast<Recompute>(random.below(3));
    l.schedule = static_cast<Schedule>(random.below(5));  // none in a V
    if (l.schedule == Schedule::interleaved) {
      l.vpp = power(2) * 2;
      if (l.recompute == Recompute::selective) l.schedule = Schedule::interleaved_zero_bubble;
    }
    if (model.has_experts()) l.ep = power(3);
    if (!invalid_reason(l, model, job, gpus)) return l;
  }
}

}  // namespace orrery::test
