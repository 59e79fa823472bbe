// SPDX-License-Identifier: Apache-2.0
// Computes what communication shows beside compute; overlap.h has the formulas.
#include "sim/engine/step/overlap.h"

#include <algorithm>

namespace orrery {

Seconds exposed(Seconds traffic, Seconds hidden, double window, double buckets, double cost) {
  const Seconds seen = std::max(traffic - hidden * window, traffic / buckets);
  return seen + (traffic - seen) * cost;
}

Seconds joined(Seconds compute, Seconds side, double cost) {
  return std::max(compute, side) + cost * std::min(compute, side);
}

Seconds beside_attention(Seconds traffic, Seconds attention, Seconds shown, double cost) {
  return std::max(Seconds(0), traffic - (attention + shown)) +
         beside_pass(traffic, attention, cost);
}

Seconds beside_pass(Seconds traffic, Seconds pass, double cost) {
  return cost * std::min(traffic, pass);
}

}  // namespace orrery
