// SPDX-License-Identifier: Apache-2.0
// Finds the least of values that change one at a time, in logarithmic time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery {

// Of equal values the first is the least.
template <class Value>
class WinnerTree {
 public:
  WinnerTree(std::size_t count, Value value) : values_(count, value) {
    while (leaves_ < count) leaves_ *= 2;
    winners_.assign(2 * leaves_, none);
    for (std::size_t i = 0; i < count; ++i) winners_[leaves_ + i] = static_cast<std::uint32_t>(i);
    for (std::size_t node = leaves_; node-- > 1;) play(node);
  }
  std::size_t best() const { return winners_[1]; }
  const Value& least() const { return values_[winners_[1]]; }
  const Value& operator[](std::size_t i) const { return values_[i]; }
  std::size_t size() const { return values_.size(); }
  void set(std::size_t i, Value value) {
    values_[i] = value;
    for (std::size_t node = (leaves_ + i) / 2; node > 0; node /= 2) play(node);
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFFU;
  void play(std::size_t node) {
    const std::uint32_t left = winners_[2 * node], right = winners_[2 * node + 1];
    winners_[node] = right == none || !(values_[right] < values_[left]) ? left : right;
  }

  std::vector<Value> values_;
  std::size_t leaves_ = 1;
  std::vector<std::uint32_t> winners_;  // of the tree's nodes, from the root at 1
};

}  // namespace orrery
