// SPDX-License-Identifier: Apache-2.0
// Knows which part of the tasks of a question a process does.
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

inline constexpr std::int64_t most_shards = 1'000'000;

// "3/8": number 3 of 8, counted from 0, as job arrays count.
struct Shard {
  std::int64_t index = 0, count = 1;
  bool has(std::uint64_t task) const {
    return task % static_cast<std::uint64_t>(count) == static_cast<std::uint64_t>(index);
  }
};

// Error at --shard for text that is no such part.
Shard parse_shard(const std::string& text);
std::string to_text(const Shard& shard);  // "3/8"

}  // namespace orrery
