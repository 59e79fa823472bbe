// SPDX-License-Identifier: Apache-2.0
// Holds running jobs in order of their ends, and finds when so many accelerators are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/units/fleet_time.h"

namespace orrery {

struct RunningEnd {
  FleetTime at;
  std::uint32_t job = 0;  // its place in the list
  std::int32_t gpus = 0;
};

// In order of (at, job), in blocks of a few hundred: an insertion moves a block's entries, and sums
// of blocks find the n-th free accelerator.
class RunningEnds {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const RunningEnd& first() const { return blocks_.front().entries[blocks_.front().gone]; }
  void insert(const RunningEnd& end);
  void pop_first();
  void erase(const RunningEnd& end);  // one that is in it
  // The first end by which `gpus` accelerators come back, all ends of that instant counted: how
  // many those are. Nothing comes back so often: {fleet_never, all}.
  struct Reach {
    FleetTime at;
    std::int64_t gpus = 0;
  };
  Reach reach(std::int64_t gpus) const;
  // In order, until visit(end) says false.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Block& block : blocks_)
      for (std::size_t i = block.gone; i < block.entries.size(); ++i)
        if (!visit(block.entries[i])) return;
  }

 private:
  struct Block {
    std::vector<RunningEnd> entries;
    std::size_t gone = 0;  // of the front: ended
    std::int64_t gpus = 0;
  };
  std::size_t block_of(const RunningEnd& end) const;
  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

}  // namespace orrery
