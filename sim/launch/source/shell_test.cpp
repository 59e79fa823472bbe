// SPDX-License-Identifier: Apache-2.0
// Decides conditions of texts and numbers.
#include "sim/launch/source/shell_test.h"

#include <charconv>
#include <optional>

#include "sim/launch/source/marks.h"

namespace orrery {
namespace {

constexpr Holds certain(bool holds) { return holds ? Holds::yes : Holds::no; }

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Holds compared(const std::string& a, const std::string& sign, const std::string& b) {
  const auto x = whole(a), y = whole(b);
  if (!x || !y) return Holds::maybe;
  if (sign == "-eq") return certain(*x == *y);
  if (sign == "-ne") return certain(*x != *y);
  if (sign == "-gt") return certain(*x > *y);
  if (sign == "-ge") return certain(*x >= *y);
  if (sign == "-lt") return certain(*x < *y);
  if (sign == "-le") return certain(*x <= *y);
  return Holds::maybe;
}

// Nobody gives the script arguments here: "$2" is empty where it is asked for.
std::vector<std::string> without_arguments(std::vector<std::string> words) {
  for (std::string& word : words) {
    const std::string text = shown(word);
    const bool argument = is_mark(word) && text.size() == 2 && text[1] >= '1' && text[1] <= '9';
    if (argument) word.clear();
  }
  return words;
}

class Test {
 public:
  explicit Test(const std::vector<std::string>& words) : words_(without_arguments(words)) {}
  Holds all() {
    const Holds result = any(0);
    return at_ == words_.size() ? result : Holds::maybe;
  }

 private:
  bool is(const char* one, const char* other) const {
    return at_ < words_.size() && (words_[at_] == one || words_[at_] == other);
  }
  Holds any(int depth) {
    Holds result = each(depth);
    while (is("-o", "||")) {
      ++at_;
      result = either(result, each(depth));
    }
    return result;
  }
  Holds each(int depth) {
    Holds result = one(depth);
    while (is("-a", "&&")) {
      ++at_;
      result = both(result, one(depth));
    }
    return result;
  }
  Holds one(int depth) {
    if (at_ >= words_.size() || depth > 32) return Holds::maybe;
    if (words_[at_] == "!") {
      ++at_;
      return opposite(one(depth + 1));
    }
    if (words_[at_] == "(") {
      ++at_;
      const Holds inside = any(depth + 1);
      if (is(")", ")")) ++at_;
      return inside;
    }
    const std::size_t left = words_.size() - at_;
    if (left >= 3 && is_sign(words_[at_ + 1])) {
      const Holds result = pair(words_[at_], words_[at_ + 1], words_[at_ + 2]);
      at_ += 3;
      return result;
    }
    if (left >= 2 && words_[at_].size() == 2 && words_[at_][0] == '-' && !has_mark(words_[at_])) {
      const std::string sign = words_[at_], word = words_[at_ + 1];
      at_ += 2;
      // A variable that nobody sets is empty where the script runs, as far as can be told.
      if (sign != "-z" && sign != "-n") return Holds::maybe;
      if (has_mark(word)) return Holds::maybe;
      return certain(word.empty() == (sign == "-z"));
    }
    const std::string word = words_[at_++];
    return has_mark(word) ? Holds::maybe : certain(!word.empty());
  }
  static bool is_sign(const std::string& word) {
    return word == "=" || word == "==" || word == "!=" || word == "-eq" || word == "-ne" ||
           word == "-gt" || word == "-ge" || word == "-lt" || word == "-le" || word == "<" ||
           word == ">" || word == "=~";
  }
  static Holds pair(const std::string& a, const std::string& sign, const std::string& b) {
    if (has_mark(a) || has_mark(b)) return Holds::maybe;
    if (sign == "=" || sign == "==") return matches(a, b);
    if (sign == "!=") return opposite(matches(a, b));
    return compared(a, sign, b);
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

}  // namespace

Holds test_holds(const std::vector<std::string>& words) { return Test(words).all(); }

Holds matches(const std::string& word, const std::string& pattern) {
  if (has_mark(word) || has_mark(pattern)) return Holds::maybe;
  if (pattern.find('[') != std::string::npos) return Holds::maybe;
  // Greedy, with one place to come back to: linear in both.
  std::size_t w = 0, p = 0, star = std::string::npos, back = 0;
  while (w < word.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == word[w] && pattern[p] != '*'))) {
      ++w;
      ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      back = w;
    } else if (star != std::string::npos) {
      p = star + 1;
      w = ++back;
    } else {
      return Holds::no;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return certain(p == pattern.size());
}

}  // namespace orrery
