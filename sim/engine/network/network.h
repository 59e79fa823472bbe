// SPDX-License-Identifier: Apache-2.0
// Knows the one interface that ideal and flow networks share: whole collectives in, completions
// out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/base/units/ticks.h"
#include "sim/engine/collectives/collectives.h"

namespace orrery {

struct CollectiveId {
  std::int64_t value = -1;
  auto operator<=>(const CollectiveId&) const = default;
};
struct Completion {
  CollectiveId id;
  Ticks time;
};

// What most collectives of a step differ in.
struct CollectiveHash {
  std::size_t operator()(const Collective& collective) const;
};

class Network {
 public:
  virtual ~Network() = default;
  // Starts a collective; `time` never lies before the last completion returned.
  virtual CollectiveId start(const Collective& collective, Ticks time) = 0;
  // The earliest completion not yet returned; nullopt when none is running.
  virtual std::optional<Completion> next_completion() = 0;
  // What the collective takes with nothing of the job's own beside it, in the groups of a stage;
  // memoised, so asking again is cheap. References stay valid.
  virtual const CollectiveTime& price(const Collective& collective, std::int64_t stage = 0) = 0;
};

}  // namespace orrery
