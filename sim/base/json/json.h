// SPDX-License-Identifier: Apache-2.0
// Reads JSON strictly: every error names file, path, what was found and expected.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

// A value in a JSON document that knows its file and its path in it. Cheap to copy. Reading it as
// the wrong type throws Error. Documents nest at most 64 deep and hold at most 64 MiB; duplicate
// keys, comments, NaN and trailing text are errors.
class JsonValue {
 public:
  // Missing, directory, empty: Error. A process reads a file once, until the file changes.
  static JsonValue load(const std::filesystem::path& file);
  static JsonValue parse(std::string_view text, std::string file);
  // Wraps a value made in memory (a merged overlay, flags) under a file name for messages.
  static JsonValue from(SortedJson value, std::string file);

  const std::string& file() const;
  std::string path() const;  // looked for in the document: for messages
  const SortedJson& raw() const { return *value_; }

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  bool has(std::string_view key) const;      // object with that key (value may be null)
  JsonValue at(std::string_view key) const;  // Error when missing, with the nearest key
  std::optional<JsonValue> find(std::string_view key) const;       // absent or null: nullopt
  std::vector<JsonValue> items() const;                            // Error unless an array
  std::vector<std::pair<std::string, JsonValue>> members() const;  // Error unless an object
  // The items of a list, or of text with commas; spaces around them do not count. Each part of a
  // text stands where the text does, so that an error names the same place.
  std::vector<JsonValue> listed() const;

  std::string text() const;
  // What names an entry: text; of an object, which is an entry that stands inline, its JSON.
  std::string reference() const;
  double number() const;                                            // finite
  double share() const;                                             // from 0 to 1
  std::int64_t integer() const;                                     // no fraction
  std::int64_t integer(std::int64_t low, std::int64_t high) const;  // in [low, high]
  bool boolean() const;
  template <class Q>
  Q quantity() const {
    return Q(si(Q::dimension));
  }
  double si(Dimension wanted) const;  // text with a unit; a bare number is an Error

  // Error for any key that is not in `keys`, with the nearest valid one.
  void expect_only(std::initializer_list<std::string_view> keys) const;
  // The same for keys that are too many to list: `expected` says what they are.
  void expect_only(const std::vector<std::string>& keys, const std::string& expected) const;
  // One of `names`, else Error with the nearest; and which of them.
  std::string one_of(const std::vector<std::string>& names) const;
  std::size_t index_in(const std::vector<std::string>& names) const;
  // Throws an Error at this place; `found` defaults to the value's text, shortened.
  [[noreturn]] void fail(const std::string& expected, std::string found = "") const;

 private:
  static JsonValue read(const std::filesystem::path& file);

  struct Document;
  std::shared_ptr<const Document> document_;
  const SortedJson* value_ = nullptr;
};

// Reads {"value": "4.8 TB/s", "low": .., "high": .., "evidence": .., "source": .., "reason": ..}.
// `value` is text with a unit for quantities, a number for double and int64. Null needs "reason";
// uncertain evidence needs low <= value <= high. Below 0 none may be. Unknown keys are errors.
template <class T>
Sourced<T> read_sourced(const JsonValue& at);

// A flat reader of the parts that read_sourced needs; T's dimension is checked by the template.
struct RawSourced {
  std::optional<double> value, low, high;
  Evidence evidence = Evidence::assumed;
  std::string source, reason;
};
RawSourced read_raw_sourced(const JsonValue& at, std::optional<Dimension> dimension, bool integer);

template <class T>
Sourced<T> read_sourced(const JsonValue& at) {
  RawSourced raw;
  if constexpr (std::is_same_v<T, double>)
    raw = read_raw_sourced(at, std::nullopt, false);
  else if constexpr (std::is_same_v<T, std::int64_t>)
    raw = read_raw_sourced(at, std::nullopt, true);
  else
    raw = read_raw_sourced(at, T::dimension, false);
  auto convert = [](std::optional<double> v) {
    return v ? std::optional<T>(static_cast<T>(*v)) : std::nullopt;
  };
  return {.value = convert(raw.value),
          .low = convert(raw.low),
          .high = convert(raw.high),
          .evidence = raw.evidence,
          .source = raw.source,
          .reason = raw.reason};
}

// The same of a share: none above 1.
Sourced<double> read_share(const JsonValue& at);

// Whether a reference (JsonValue::reference) is the JSON of an entry and not a name or a path.
inline bool is_inline_entry(std::string_view reference) { return reference.starts_with('{'); }

}  // namespace orrery
