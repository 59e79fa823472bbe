// SPDX-License-Identifier: Apache-2.0
// Knows the order of events: a binary heap of plain keys over pooled POD events.
#include "sim/engine/event_queue.h"

#include <algorithm>

#include "sim/base/errors/check.h"

namespace orrery {

EventHandle EventQueue::push(Ticks time, Event event) {
  CHECK_THAT(time >= now_, "an event lies in the past");
  std::uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(pool_.size());
    pool_.push_back(event);
    generation_.push_back(1);  // a default handle, of generation 0, names nothing
  } else {
    slot = free_.back();
    free_.pop_back();
    pool_[slot] = event;
  }
  heap_.push_back({time.ps, sequence_++, slot, generation_[slot]});
  std::push_heap(heap_.begin(), heap_.end(), later);
  ++live_;
  return {slot, generation_[slot]};
}

void EventQueue::cancel(EventHandle handle) {
  if (handle.slot >= pool_.size() || generation_[handle.slot] != handle.generation) return;
  release(handle.slot);
  // Keys of cancelled events stay behind; they are swept when they outnumber the live ones, so that
  // the heap stays linear in the pending events and the sweep costs O(1) for each cancelled one.
  if (heap_.size() < 64 || heap_.size() < 2 * live_) return;
  std::erase_if(heap_, [this](const Key& key) { return stale(key); });
  std::make_heap(heap_.begin(), heap_.end(), later);
}

void EventQueue::drop_stale() {
  while (!heap_.empty() && stale(heap_.front())) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
}

bool EventQueue::peek(Ticks& time) {
  drop_stale();
  if (heap_.empty()) return false;
  time = Ticks{heap_.front().time};
  return true;
}

bool EventQueue::pop(Ticks& time, Event& event) {
  drop_stale();
  if (heap_.empty()) return false;
  const Key key = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end(), later);
  heap_.pop_back();
  event = pool_[key.slot];
  release(key.slot);
  now_ = time = Ticks{key.time};
  return true;
}

void EventQueue::release(std::uint32_t slot) {
  ++generation_[slot];
  free_.push_back(slot);
  --live_;
}

}  // namespace orrery
