// SPDX-License-Identifier: Apache-2.0
// Sorts lists of large values by their places: what compares and moves is compiled once.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace orrery {

// The places 0 to n - 1 in order; those of which neither is before the other stay as they are.
std::vector<std::size_t> sorted_places(std::size_t n,
                                       const std::function<bool(std::size_t, std::size_t)>& before);

// As std::stable_sort, which for every type makes kilobytes of code. `before(a, b)`: of two values.
template <class T, class Before>
void sort_stably(std::vector<T>& list, const Before& before) {
  std::vector<T> sorted;
  sorted.reserve(list.size());
  for (const std::size_t i : sorted_places(
           list.size(), [&](std::size_t a, std::size_t b) { return before(list[a], list[b]); }))
    sorted.push_back(std::move(list[i]));
  list = std::move(sorted);
}

}  // namespace orrery
