// SPDX-License-Identifier: Apache-2.0
// Holds sets of hosts as words of bits that are joined, cut and counted a word at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery {

using HostWords = std::vector<std::uint64_t>;
using HostWordsView = std::span<const std::uint64_t>;

inline std::size_t words_for(std::int32_t hosts) {
  return (static_cast<std::size_t>(hosts) + 63) / 64;
}
inline bool has_host(HostWordsView set, std::int32_t host) {
  return (set[static_cast<std::size_t>(host) / 64] >> (host % 64) & 1) != 0;
}
inline void add_host(std::span<std::uint64_t> set, std::int32_t host) {
  set[static_cast<std::size_t>(host) / 64] |= std::uint64_t{1} << (host % 64);
}
inline void remove_host(std::span<std::uint64_t> set, std::int32_t host) {
  set[static_cast<std::size_t>(host) / 64] &= ~(std::uint64_t{1} << (host % 64));
}
// Whether there are so many.
inline bool has_hosts(HostWordsView set, std::int32_t count) {
  for (std::size_t i = 0; i < set.size() && count > 0; ++i) count -= std::popcount(set[i]);
  return count <= 0;
}
// How many of those from `from` to `to` - 1.
inline std::int32_t count_hosts(HostWordsView set, std::int32_t from, std::int32_t to) {
  std::int32_t count = 0;
  for (std::int32_t host = from; host < to;) {
    const std::int32_t many = std::min(64 - host % 64, to - host);
    const std::uint64_t word = set[static_cast<std::size_t>(host) / 64] >> (host % 64);
    count += std::popcount(many == 64 ? word : word & ((std::uint64_t{1} << many) - 1));
    host += many;
  }
  return count;
}
// visit(host) for each, in order.
template <class Visit>
void each_host(HostWordsView set, const Visit& visit) {
  for (std::size_t i = 0; i < set.size(); ++i)
    for (std::uint64_t word = set[i]; word != 0; word &= word - 1)
      visit(static_cast<std::int32_t>(i * 64) + std::countr_zero(word));
}

}  // namespace orrery
