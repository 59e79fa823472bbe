// SPDX-License-Identifier: Apache-2.0
// Finds hosts of a set by words of bits.
#include "topologies/host_set.h"

#include <bit>

namespace orrery {
namespace {

constexpr std::size_t word_bits = 64;

}  // namespace

HostSet::HostSet(std::int32_t hosts) {
  auto count = static_cast<std::size_t>(hosts);
  do {
    count = (count + word_bits - 1) / word_bits;
    levels_.emplace_back(count, 0);
  } while (count > 1);
}

bool HostSet::contains(std::int32_t host) const {
  const auto i = static_cast<std::size_t>(host);
  return (levels_[0][i / word_bits] >> (i % word_bits) & 1) != 0;
}

void HostSet::insert(std::int32_t host) {
  if (contains(host)) return;
  ++size_;
  auto i = static_cast<std::size_t>(host);
  for (auto& level : levels_) {
    std::uint64_t& word = level[i / word_bits];
    const bool was_empty = word == 0;
    word |= UINT64_C(1) << (i % word_bits);
    if (!was_empty) return;
    i /= word_bits;
  }
}

void HostSet::erase(std::int32_t host) {
  if (!contains(host)) return;
  --size_;
  auto i = static_cast<std::size_t>(host);
  for (auto& level : levels_) {
    std::uint64_t& word = level[i / word_bits];
    word &= ~(UINT64_C(1) << (i % word_bits));
    if (word != 0) return;
    i /= word_bits;
  }
}

std::int32_t HostSet::first(std::int32_t from) const {
  auto i = static_cast<std::size_t>(from);
  // Up, until a word has a bit from i on; then down to the lowest host below that bit.
  for (std::size_t at = 0; at < levels_.size(); ++at) {
    const auto& level = levels_[at];
    if (i / word_bits >= level.size()) return -1;
    const std::uint64_t rest = level[i / word_bits] >> (i % word_bits);
    if (rest != 0) {
      i += static_cast<std::size_t>(std::countr_zero(rest));
      for (std::size_t below = at; below-- > 0;)
        i = i * word_bits + static_cast<std::size_t>(std::countr_zero(levels_[below][i]));
      return static_cast<std::int32_t>(i);
    }
    i = i / word_bits + 1;
  }
  return -1;
}

}  // namespace orrery
