// SPDX-License-Identifier: Apache-2.0
// Lets decisions hold for a slice of rounds.
#include "sim/engine/elastic/round_slices.h"

#include <algorithm>
#include <numeric>

namespace orrery {

bool RoundSlices::next(std::int32_t rounds) {
  const bool begins = left_ == 0;
  left_ = begins ? rounds - 1 : left_ - 1;
  return begins;
}

std::vector<std::size_t> slice_order(const RoundView& view, bool begins,
                                     const std::function<bool(std::size_t, std::size_t)>& before) {
  std::vector<std::size_t> order(view.jobs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto stays = [&](std::size_t i) { return !begins && !view.jobs[i].place->empty(); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return stays(a) != stays(b) ? stays(a) : before(a, b);
  });
  return order;
}

}  // namespace orrery
