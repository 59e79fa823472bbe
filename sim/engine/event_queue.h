// SPDX-License-Identifier: Apache-2.0
// Knows the order of events: a binary heap of plain keys over pooled POD events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/units/ticks.h"

namespace orrery {

// What happens: `kind` and two operands that mean what the owner's one switch says.
struct Event {
  std::uint32_t kind = 0;
  std::int64_t a = 0, b = 0;
};
// Names a pushed event for cancelling; a stale one is ignored.
struct EventHandle {
  std::uint32_t slot = 0, generation = 0;
};

// Events leave in order of time, ties in order of push (law 2: the clock never goes back; pushing
// before the last popped time aborts). push and pop are O(log n), cancel O(1).
class EventQueue {
 public:
  EventHandle push(Ticks time, Event event);
  void cancel(EventHandle handle);
  bool pop(Ticks& time, Event& event);  // false when empty
  bool peek(Ticks& time);               // the time of what pop() would give; false when empty
  bool empty() const { return live_ == 0; }
  std::size_t size() const { return live_; }
  Ticks now() const { return now_; }

 private:
  struct Key {
    std::int64_t time;
    std::uint64_t sequence;
    std::uint32_t slot, generation;
  };
  static bool later(const Key& a, const Key& b) {  // std::push_heap keeps the greatest in front
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }
  bool stale(const Key& key) const { return generation_[key.slot] != key.generation; }
  void release(std::uint32_t slot);
  void drop_stale();  // cancelled keys at the front

  std::vector<Key> heap_;
  std::vector<Event> pool_;
  std::vector<std::uint32_t> generation_, free_;
  std::uint64_t sequence_ = 0;
  std::size_t live_ = 0;
  Ticks now_;
};

}  // namespace orrery
