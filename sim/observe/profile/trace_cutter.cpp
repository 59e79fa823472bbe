// SPDX-License-Identifier: Apache-2.0
// Finds the ends of JSON values by braces and quotes alone.
#include "sim/observe/profile/trace_cutter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "sim/base/errors/check.h"

namespace orrery::observe {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20U, longest_value = std::size_t{64} << 20U;
constexpr int deepest = 64;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Characters at which a scan outside of texts has to look.
constexpr std::array<bool, 256> make_marks() {
  std::array<bool, 256> marks{};
  for (const char c : {'"', '{', '}', '[', ']'}) marks[static_cast<unsigned char>(c)] = true;
  return marks;
}
constexpr std::array<bool, 256> marks = make_marks();

}  // namespace

void EventBatch::clear() {
  text.clear();
  begins.clear();
  offsets.clear();
}

TraceCutter::TraceCutter(ByteStream& stream) : stream_(stream) {}

void TraceCutter::refuse(const std::string& found, const std::string& expected) const {
  throw Error({.file = stream_.name(),
               .path = fmt::format("byte {}", buffer_offset_ + begin_),
               .found = found,
               .expected = expected});
}

bool TraceCutter::ensure(std::size_t at) {
  if (begin_ + at < buffer_.size()) return true;
  if (ended_) return false;
  // What is cut goes away, so that the buffer holds one value and a piece.
  buffer_.erase(0, begin_);
  buffer_offset_ += begin_;
  begin_ = 0;
  while (at >= buffer_.size() && !ended_) {
    const std::size_t before = buffer_.size();
    if (before > longest_value + piece) refuse("a value of more than 64 MiB", "events of a trace");
    buffer_.resize(before + piece);
    const std::size_t some = stream_.read(buffer_.data() + before, piece);
    buffer_.resize(before + some);
    ended_ = some < piece;
  }
  return at < buffer_.size();
}

char TraceCutter::peek() {
  while (ensure(0)) {
    while (begin_ < buffer_.size() && is_blank(buffer_[begin_])) ++begin_;
    if (begin_ < buffer_.size()) return buffer_[begin_];
  }
  return '\0';
}

// The length of the value that begins here; false where the file ends in it.
bool TraceCutter::find_value_end(std::size_t& length) {
  int depth = 0;
  bool in_text = false;
  std::size_t at = 0;
  while (ensure(at)) {
    const char* const base = buffer_.data() + begin_;
    const std::size_t have = buffer_.size() - begin_;
    while (at < have) {
      if (in_text) {
        // To the next quote; a backslash takes what follows it along.
        while (at < have && base[at] != '"' && base[at] != '\\') ++at;
        if (at >= have) break;
        if (base[at] == '\\') {
          at += 2;
          continue;
        }
        in_text = false;
        ++at;
        if (depth == 0) {
          length = at;
          return true;
        }
        continue;
      }
      while (at < have && !marks[static_cast<unsigned char>(base[at])]) {
        const char c = base[at];
        if (depth == 0 && (c == ',' || is_blank(c))) {  // of a number or a word
          length = at;
          return true;
        }
        ++at;
      }
      if (at >= have) break;
      const char c = base[at];
      if (c == '"') {
        in_text = true;
      } else if (c == '{' || c == '[') {
        if (++depth > deepest) refuse("a 65th level of nesting", "JSON nested at most 64 deep");
      } else if (depth == 0) {  // the end of what is around a number
        length = at;
        return true;
      } else if (--depth == 0) {
        length = at + 1;
        return true;
      }
      ++at;
    }
  }
  return false;
}

// Takes a key and what follows it, up to the events or to the next key. False at the end.
bool TraceCutter::take_key() {
  char c = peek();
  if (c == ',') {
    drop(1);
    c = peek();
  }
  if (c == '}' || c == '\0') {
    cut_ = cut_ || c == '\0';
    place_ = Place::end;
    return false;
  }
  if (c != '"') refuse(in_quotes(std::string_view(&c, 1)), "a key in quotes");
  std::size_t length = 0;
  const auto ends_here = [this] {
    cut_ = true;
    place_ = Place::end;
    return false;
  };
  if (!find_value_end(length)) return ends_here();
  const std::string key = buffer_.substr(begin_ + 1, length - 2);
  drop(length);
  if ((c = peek()) == '\0') return ends_here();
  if (c != ':') refuse(in_quotes(std::string_view(&c, 1)), "\":\" behind a key");
  drop(1);
  c = peek();
  if (key == "traceEvents") {
    if (c == '\0') return ends_here();
    if (c != '[') refuse(in_quotes(std::string_view(&c, 1)), "a list of events");
    drop(1);
    found_events_ = true;
    place_ = Place::events;
    return true;
  }
  if (c == '\0' || !find_value_end(length)) return ends_here();
  constexpr std::size_t longest_kept = std::size_t{1} << 20U, most_keys = 1000;
  if (length == 0) refuse("no value", "a value behind a key");
  if (length <= longest_kept && head_.size() < most_keys)
    head_.try_emplace(key, buffer_, begin_, length);
  drop(length);
  return true;
}

// Events up to the size, or to the end of their list.
bool TraceCutter::fill_events(EventBatch& batch, std::size_t size) {
  while (batch.text.size() < size) {
    char c = peek();
    if (c == ',') {
      drop(1);
      c = peek();
    }
    std::size_t length = 0;
    if (c == ']') {
      drop(1);
      place_ = is_object_ ? Place::keys : Place::end;
      return false;
    }
    if (c == '\0' || (c == '{' && !find_value_end(length))) {
      cut_ = true;
      place_ = Place::end;
      return false;
    }
    if (c != '{') refuse(in_quotes(std::string_view(&c, 1)), "an event, in braces");
    if (!batch.begins.empty()) batch.text += ',';
    batch.begins.push_back(batch.text.size());
    batch.offsets.push_back(buffer_offset_ + begin_);
    batch.text.append(buffer_, begin_, length);
    drop(length);
  }
  return true;
}

bool TraceCutter::fill(EventBatch& batch, std::size_t size) {
  batch.clear();
  batch.text = "[";
  if (place_ == Place::start) {
    const char c = peek();
    if (c != '{' && c != '[')
      refuse(in_quotes(std::string_view(&c, 1)), "a trace in JSON: an object or a list");
    drop(1);
    is_object_ = c == '{';
    found_events_ = !is_object_;
    place_ = is_object_ ? Place::keys : Place::events;
  }
  while (place_ != Place::end) {
    if (place_ == Place::keys) take_key();
    if (place_ == Place::events && fill_events(batch, size)) break;
  }
  batch.text += ']';
  return !batch.begins.empty();
}

}  // namespace orrery::observe
