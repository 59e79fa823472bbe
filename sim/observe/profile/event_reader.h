// SPDX-License-Identifier: Apache-2.0
// Knows what one event of PyTorch's profiler adds to a timeline.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "sim/observe/profile/timeline.h"
#include "sim/observe/profile/trace_cutter.h"

namespace orrery::observe {

// Takes batches of events, one after the other; on one thread at a time.
class EventReader {
 public:
  EventReader(std::string file, Timeline& timeline);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Events that are no JSON (older releases wrote "inf" and quotes in names) are counted and left
  // out. Error where that are more than one in a hundred of more than a hundred, or the first.
  void take(const EventBatch& batch);
  std::uint64_t broken() const { return broken_; }

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::uint64_t broken_ = 0, taken_ = 0;
  std::string file_;
};

// What stands at the head of a trace: rank, device, what was recorded.
void read_head(const std::map<std::string, std::string>& head, Profile& profile);

}  // namespace orrery::observe
