// SPDX-License-Identifier: Apache-2.0
// Finds how many accelerators each job gets so that a sum of costs is the least: exactly.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// What a job may get, and what that costs: any measure that is to be small.
struct SizeOption {
  std::int64_t gpus = 0;
  std::int64_t cost = 0;  // 0 to most_size_cost
};
inline constexpr std::int64_t most_size_cost = INT64_C(1'000'000'000'000);

// The option of each job, by its place, so that their accelerators are at most `gpus` and the sum
// of costs is the least that there is. All jobs have options; the ones with the fewest accelerators
// fit together. Of equally good choices always the same one.
std::vector<std::size_t> choose_sizes(const std::vector<std::vector<SizeOption>>& jobs,
                                      std::int64_t gpus);

}  // namespace orrery
