// SPDX-License-Identifier: Apache-2.0
// Holds sort_stably to std::stable_sort.
#include "sim/base/sorting.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"

namespace orrery {
namespace {

TEST_CASE("law of sorting: lists come out as std::stable_sort leaves them, ties in their order") {
  RandomStream random(7, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<std::uint64_t, std::string>> list;
    for (std::uint64_t i = random.below(40); i > 0; --i)
      list.emplace_back(random.below(6), std::string(40, static_cast<char>('a' + i % 26)));
    auto expected = list;
    const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(expected.begin(), expected.end(), before);
    sort_stably(list, before);
    CHECK(list == expected);
  }
}

}  // namespace
}  // namespace orrery
