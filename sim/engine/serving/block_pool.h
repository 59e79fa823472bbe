// SPDX-License-Identifier: Apache-2.0
// Knows which blocks of keys and values are free, in use or cached, in memory and in tiers below.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/serving/unit_map.h"

namespace orrery {

inline constexpr std::size_t most_tiers = 4;  // device memory is the first

struct PoolShape {
  std::int64_t blocks = 0;  // of device memory
  std::int64_t unit_blocks =
      0;  // blocks of a unit of text that requests share; 0: nothing is shared
  std::vector<std::int64_t> tier_units;  // units that each tier below holds
};

// What of a text is cached: its leading units.
struct PoolMatch {
  std::int64_t units = 0;
  std::int64_t idle = 0;                           // of them, in device memory and held by nobody
  std::array<std::int64_t, most_tiers> in_tier{};  // units by the tier that they lie in
  std::int64_t below() const { return units - in_tier[0]; }
};

// Blocks are private to a request, or belong to a unit of text. A unit is found by its number,
// which stands for all text up to its end, counts who holds it, and stays cached when nobody does
// until the space is needed: least recently used first, and from the end of a text, so that what is
// cached of a text is its beginning. Evicted units go to the tier below while there is one.
class BlockPool {
 public:
  explicit BlockPool(const PoolShape& shape);

  std::int64_t blocks() const { return shape_.blocks; }
  std::int64_t free() const { return free_; }
  std::int64_t used() const { return private_ + held_units_ * shape_.unit_blocks; }
  std::int64_t cached() const { return idle_units_ * shape_.unit_blocks; }
  std::int64_t available() const { return free_ + cached(); }
  std::int64_t unit_blocks() const { return shape_.unit_blocks; }
  std::int64_t tier_units(std::size_t tier) const { return lists_[tier].size; }

  // Private blocks. `take` evicts where few are free; at most available() can be taken.
  void take(std::int64_t blocks);
  void give_back(std::int64_t blocks);

  PoolMatch match(std::span<const std::uint32_t> text) const;
  // Holds the leading units; those below come up into free or cached blocks.
  void hold(std::span<const std::uint32_t> units);
  // The unit was computed into private blocks, which become its own; where it is known already
  // those are free again.
  void keep(std::uint32_t unit);
  // Nobody else may know of the order: from the end of the text.
  void release(std::span<const std::uint32_t> units);

  // Counts everything anew: free + used + cached = blocks, no reference below 0, no tier too full.
  bool consistent() const;

 private:
  struct Node {
    std::uint32_t unit = UnitMap::none;
    std::uint32_t before = UnitMap::none, behind = UnitMap::none;
    std::int32_t references = 0;
    std::uint32_t tier = 0;
  };
  struct List {  // from least to most recently used
    std::uint32_t first = UnitMap::none, last = UnitMap::none;
    std::int64_t size = 0;
  };

  void append(std::uint32_t node, std::size_t tier);
  void unlink(std::uint32_t node);
  std::uint32_t new_node(std::uint32_t unit);
  void forget(std::uint32_t node);
  void evict_one();
  void make_free(std::int64_t blocks);

  PoolShape shape_;
  std::int64_t free_ = 0, private_ = 0, held_units_ = 0, idle_units_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> spare_;
  UnitMap map_;
  std::array<List, most_tiers> lists_;
};

}  // namespace orrery
