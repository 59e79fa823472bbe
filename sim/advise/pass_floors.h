// Knows how little a microbatch takes through a whole model, for all families of the same sizes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>

#include "sim/engine/step_series.h"

namespace orrery {

// The time of one microbatch through all layers depends on tensor, context and expert ranks, rows
// and precision, and hardly on how many stages share the layers or which optimizer follows: most
// families of a grid have it in common, and it is priced once. Safe to share between threads: what
// is remembered does not depend on who asked first.
class PassFloors {
 public:
  // Of layouts like this one at any pp, schedule without split backward, rank order and optimizer,
  // and whatever runs again: at least so long, without what data parallelism adds.
  Seconds of(const StepContext& context, const Model& model, const Job& job, const Stack& stack,
             const Layout& layout) const;

 private:
  using Key = std::array<std::int64_t, 10>;
  mutable std::mutex mutex_;
  mutable std::map<Key, Seconds> known_;
};

}  // namespace orrery
