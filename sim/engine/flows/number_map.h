// SPDX-License-Identifier: Apache-2.0
// Finds indices by numbers that lie far apart: an open hash table that only grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace orrery {

class NumberMap {
 public:
  // The index kept for a number, and whether it is new: then it is `fresh`.
  std::pair<std::uint32_t, bool> find_or_add(std::int64_t number, std::uint32_t fresh) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(number);
    if (slot.number == number) return {slot.index, false};
    slot = {number, fresh};
    ++size_;
    return {fresh, true};
  }

 private:
  struct Slot {
    std::int64_t number = -1;  // none
    std::uint32_t index = 0;
  };
  // Fibonacci hashing (Knuth, volume 3, 6.4): neighbours spread over the table.
  Slot& slot_of(std::int64_t number) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15u) >> 20;
    while (slots_[at & mask].number != -1 && slots_[at & mask].number != number) ++at;
    return slots_[at & mask];
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? first_size : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.number != -1) slot_of(slot.number) = slot;
  }

  static constexpr std::size_t first_size = 64;  // a power of two, as all sizes
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace orrery
