// SPDX-License-Identifier: Apache-2.0
// Finds the place of a number: a flat hash table without allocation per entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery {

// Open addressing with linear probing, at most half full. Keys are any but 2^32 - 1.
class UnitMap {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFFU;

  std::uint32_t find(std::uint32_t key) const {
    if (cells_.empty()) return none;
    for (std::size_t i = home(key);; i = (i + 1) & mask_) {
      if (cells_[i].key == key) return cells_[i].value;
      if (cells_[i].key == none) return none;
    }
  }
  // Of a key that is not there.
  void insert(std::uint32_t key, std::uint32_t value) {
    if (2 * (size_ + 1) > cells_.size()) grow();
    put(key, value);
    ++size_;
  }
  void set(std::uint32_t key, std::uint32_t value) {
    for (std::size_t i = home(key);; i = (i + 1) & mask_)
      if (cells_[i].key == key) {
        cells_[i].value = value;
        return;
      }
  }
  // Of a key that is there. What stood behind it moves up, so that no tombs remain.
  void erase(std::uint32_t key) {
    std::size_t hole = home(key);
    while (cells_[hole].key != key) hole = (hole + 1) & mask_;
    for (std::size_t i = (hole + 1) & mask_; cells_[i].key != none; i = (i + 1) & mask_) {
      if (((i - home(cells_[i].key)) & mask_) < ((i - hole) & mask_)) continue;
      cells_[hole] = cells_[i];
      hole = i;
    }
    cells_[hole].key = none;
    --size_;
  }
  std::size_t size() const { return size_; }

 private:
  struct Cell {
    std::uint32_t key = none, value = none;
  };
  // Fibonacci hashing: keys are counted 0, 1, 2, ... and would cluster as they are.
  std::size_t home(std::uint32_t key) const {
    return (key * std::uint64_t{0x9E3779B97F4A7C15U} >> 32U) & mask_;
  }
  void put(std::uint32_t key, std::uint32_t value) {
    std::size_t i = home(key);
    while (cells_[i].key != none) i = (i + 1) & mask_;
    cells_[i] = {key, value};
  }
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 16 : 2 * cells_.size());
    old.swap(cells_);
    mask_ = cells_.size() - 1;
    for (const Cell& cell : old)
      if (cell.key != none) put(cell.key, cell.value);
  }

  std::vector<Cell> cells_;
  std::size_t mask_ = 0, size_ = 0;
};

}  // namespace orrery
