// SPDX-License-Identifier: Apache-2.0
// Knows where events of a JSON trace begin and end, without what is in them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/observe/input/byte_stream.h"

namespace orrery::observe {

// Whole events as one JSON array, with the places where they stand in the file.
struct EventBatch {
  std::string text;                    // "[{...},{...}]"
  std::vector<std::size_t> begins;     // of events, in `text`
  std::vector<std::uint64_t> offsets;  // of events, in the unpacked file
  void clear();
};

// Cuts a trace, {"traceEvents": [...], ...} or [...], into batches of events, in memory that does
// not grow with the file.
class TraceCutter {
 public:
  explicit TraceCutter(ByteStream& stream);

  // Replaces the batch by the next events, of together about `size` bytes; false when there are no
  // more. Error: text that is no JSON object or array, an event or value of more than 64 MiB, one
  // nested more than 64 deep.
  bool fill(EventBatch& batch, std::size_t size);
  // The values that stand beside the events, as JSON, by key; complete after the last batch.
  const std::map<std::string, std::string>& head() const { return head_; }
  bool found_events() const { return found_events_; }
  // The file ended in the middle.
  bool is_cut() const { return cut_; }

 private:
  enum class Place : std::uint8_t { start, keys, events, end };

  bool ensure(std::size_t at);  // that buffer_[at] is there; at counts from begin_
  char peek();                  // the next character that is no blank; '\0' at the end
  bool take_key();
  bool find_value_end(std::size_t& length);
  void drop(std::size_t bytes) { begin_ += bytes; }
  bool fill_events(EventBatch& batch, std::size_t size);
  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const;

  ByteStream& stream_;
  std::string buffer_;
  std::size_t begin_ = 0;            // of what is not cut yet, in buffer_
  std::uint64_t buffer_offset_ = 0;  // of buffer_, in the file
  Place place_ = Place::start;
  bool is_object_ = false, found_events_ = false, cut_ = false, ended_ = false;
  std::map<std::string, std::string> head_;
};

}  // namespace orrery::observe
