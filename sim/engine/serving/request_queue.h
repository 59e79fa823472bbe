// SPDX-License-Identifier: Apache-2.0
// Holds requests that wait: by priority, then first come, first served.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units/ticks.h"

namespace orrery {

struct Waiting {
  std::uint32_t request = 0;
  std::int32_t emitted = 0;  // tokens that it emitted before it was preempted, or elsewhere
  std::int32_t saved = 0;    // tokens whose keys and values lie ready for it
  bool foreign = false;      // another engine computed those
  Ticks since;
};

// A ring for each priority: both ends take and give in constant time.
class RequestQueue {
 public:
  // The priority of each class, the lowest first; empty: all alike.
  explicit RequestQueue(std::span<const std::int32_t> priorities)
      : by_class_(priorities.begin(), priorities.end()) {
    std::vector<std::int32_t> levels = by_class_;
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    for (std::int32_t& priority : by_class_)
      priority = static_cast<std::int32_t>(
          std::lower_bound(levels.begin(), levels.end(), priority) - levels.begin());
    rings_.resize(std::max<std::size_t>(levels.size(), 1));
  }

  // The ring of a class; classes without a priority come last.
  std::size_t level(std::int32_t class_index) const {
    const auto i = static_cast<std::size_t>(class_index);
    return i < by_class_.size() ? static_cast<std::size_t>(by_class_[i]) : rings_.size() - 1;
  }
  bool empty() const { return size_ == 0; }
  std::int64_t size() const { return size_; }
  std::size_t first_level() const {  // of what front() gives; not of an empty queue
    std::size_t level = 0;
    while (rings_[level].size == 0) ++level;
    return level;
  }
  const Waiting& front() const {
    const Ring& ring = rings_[first_level()];
    return ring.cells[ring.begin];
  }
  // Those that wait in their order, as long as `each` says true.
  template <class Each>
  void visit(const Each& each) const {
    for (const Ring& ring : rings_)
      for (std::size_t i = 0; i < ring.size; ++i)
        if (!each(ring.cells[(ring.begin + i) & (ring.cells.size() - 1)])) return;
  }
  void pop() {
    Ring& ring = rings_[first_level()];
    ring.begin = (ring.begin + 1) & (ring.cells.size() - 1);
    --ring.size;
    --size_;
  }
  void push_back(std::size_t level, const Waiting& waiting) {
    Ring& ring = grown(level);
    ring.cells[(ring.begin + ring.size++) & (ring.cells.size() - 1)] = waiting;
  }
  void push_front(std::size_t level, const Waiting& waiting) {
    Ring& ring = grown(level);
    ring.begin = (ring.begin + ring.cells.size() - 1) & (ring.cells.size() - 1);
    ring.cells[ring.begin] = waiting;
    ++ring.size;
  }

 private:
  struct Ring {
    std::vector<Waiting> cells;  // a power of two
    std::size_t begin = 0, size = 0;
  };
  // The ring with room for one more, which is counted.
  Ring& grown(std::size_t level) {
    Ring& ring = rings_[level];
    ++size_;
    if (ring.size < ring.cells.size()) return ring;
    std::vector<Waiting> larger(std::max<std::size_t>(8, 2 * ring.cells.size()));
    for (std::size_t i = 0; i < ring.size; ++i)
      larger[i] = ring.cells[(ring.begin + i) & (ring.cells.size() - 1)];
    ring.cells.swap(larger);
    ring.begin = 0;
    return ring;
  }

  std::vector<std::int32_t> by_class_;
  std::vector<Ring> rings_;
  std::int64_t size_ = 0;
};

}  // namespace orrery
