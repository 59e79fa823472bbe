// SPDX-License-Identifier: Apache-2.0
// Puts places in order, for lists of all types.
#include "sim/base/sorting.h"

#include <algorithm>
#include <numeric>

namespace orrery {

std::vector<std::size_t> sorted_places(
    std::size_t n, const std::function<bool(std::size_t, std::size_t)>& before) {
  std::vector<std::size_t> places(n);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), before);
  return places;
}

}  // namespace orrery
