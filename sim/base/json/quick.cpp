// SPDX-License-Identifier: Apache-2.0
// Reads JSON in one pass over the text. Catalogues are most of what a short command reads, and the
// general parser spends ten times as long on each character.
#include "sim/base/json/quick.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/base/json/parser.h"

namespace orrery {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Stands at one place in the text. Every function returns false where it is not sure.
class QuickReader {
 public:
  explicit QuickReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool document(SortedJson& root) {
    if (!value(root, 0)) return false;
    skip_blanks();
    return at_ == end_;
  }

 private:
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  // Whether the next character that is no blank is this one; it is passed if so.
  bool pass(char wanted) {
    skip_blanks();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }

  bool value(SortedJson& target, int depth) {
    skip_blanks();
    if (at_ == end_) return false;
    switch (*at_) {
      case '{':
        return object(target, depth + 1);
      case '[':
        return array(target, depth + 1);
      case '"': {
        std::string found;
        if (!text(found)) return false;
        target = std::move(found);
        return true;
      }
      case 't':
        return word("true", target, true);
      case 'f':
        return word("false", target, false);
      case 'n':
        return word("null", target, nullptr);
      default:
        return number(target);
    }
  }

  template <class T>
  bool word(std::string_view expected, SortedJson& target, T meaning) {
    if (!std::string_view(at_, end_).starts_with(expected)) return false;
    at_ += expected.size();
    target = meaning;
    return true;
  }

  bool object(SortedJson& target, int depth) {
    if (depth > json_depth_limit) return false;
    ++at_;
    SortedJson::Members members;
    if (pass('}')) return target.take({});
    do {
      skip_blanks();
      auto& [key, member] = members.emplace_back();
      if (at_ == end_ || *at_ != '"' || !text(key) || !pass(':')) return false;
      if (!value(member, depth)) return false;
    } while (pass(','));
    return pass('}') && target.take(std::move(members));
  }

  bool array(SortedJson& target, int depth) {
    if (depth > json_depth_limit) return false;
    ++at_;
    target = SortedJson::array();
    auto& items = target.elements();
    if (pass(']')) return true;
    do {
      if (!value(items.emplace_back(), depth)) return false;
    } while (pass(','));
    return pass(']');
  }

  // Text of printable ASCII and the escapes of one letter.
  bool text(std::string& target) {
    const char* start = ++at_;
    for (; at_ != end_; ++at_) {
      if (*at_ == '"') {
        target.append(start, at_);
        ++at_;
        return true;
      }
      if (*at_ == '\\') {
        target.append(start, at_);
        if (++at_ == end_ || !escaped(target)) return false;
        start = at_ + 1;
      } else if (*at_ < ' ' || *at_ > '~') {
        return false;
      }
    }
    return false;
  }
  bool escaped(std::string& target) const {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const std::size_t which = letters.find(*at_);
    if (which == std::string_view::npos) return false;
    target += meanings[which];
    return true;
  }

  // Passes digits; false where there is none.
  bool digits() {
    const char* start = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != start;
  }
  bool number(SortedJson& target) {
    const char* start = at_;
    const bool negative = *at_ == '-';
    if (negative) ++at_;
    const bool leading_zero = at_ != end_ && *at_ == '0';
    const char* first = at_;
    if (!digits() || (leading_zero && at_ - first > 1)) return false;
    const bool whole = at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E');
    if (whole)
      return negative ? whole_number<std::int64_t>(start, target)
                      : whole_number<std::uint64_t>(start, target);
    if (*at_ == '.') {
      ++at_;
      if (!digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return false;
    }
    double real = 0;
    const auto [rest, error] = std::from_chars(start, at_, real);
    if (error != std::errc() || rest != at_ || !std::isfinite(real)) return false;
    target = real;
    return true;
  }
  template <class Whole>
  bool whole_number(const char* start, SortedJson& target) const {
    Whole number = 0;
    const auto [rest, error] = std::from_chars(start, at_, number);
    if (error != std::errc() || rest != at_) return false;  // beyond 64 bits it is no whole number
    target = number;
    return true;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

std::optional<SortedJson> parse_quickly(std::string_view text) {
  SortedJson root;
  if (text.size() > json_size_limit || !QuickReader(text).document(root)) return std::nullopt;
  return root;
}

}  // namespace orrery
