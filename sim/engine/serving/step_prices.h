// SPDX-License-Identifier: Apache-2.0
// Says what the engine's clock asks of a model of a step: how long it takes, host included.
#pragma once

#include <cstdint>
#include <limits>

#include "sim/base/units/ticks.h"
#include "workloads/serving/step_shape.h"

namespace orrery {

// When nothing is to come.
inline constexpr Ticks end_of_time{std::numeric_limits<std::int64_t>::max()};

// Time of a pure decode step = at_first + per_token * (contexts - first), for contexts in
// [first, last].
struct DecodePiece {
  Ticks at_first, per_token;
  std::int64_t first = 0, last = 0;
};

// Any thread may ask. All times are above 0.
class StepPrices {
 public:
  virtual ~StepPrices() = default;
  virtual DecodePiece decode(std::int64_t decodes, std::int64_t contexts) const = 0;
  // Of a shape without chunks and drafts, none in its group either: what decode() says, exactly.
  virtual Ticks step(const StepShape& shape) const = 0;
  // What the host needs to launch a step, which takes so long, kernel by kernel; nothing where a
  // graph holds it.
  virtual Ticks launching(const StepShape&, Ticks /*step*/) const { return {}; }
};

}  // namespace orrery
