// SPDX-License-Identifier: Apache-2.0
// Knows which conditions of a script its own variables decide.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

enum class Holds : std::uint8_t { no, yes, maybe };
constexpr Holds opposite(Holds h) {
  return h == Holds::maybe ? h : h == Holds::yes ? Holds::no : Holds::yes;
}
constexpr Holds both(Holds a, Holds b) {
  if (a == Holds::no || b == Holds::no) return Holds::no;
  return a == Holds::yes && b == Holds::yes ? Holds::yes : Holds::maybe;
}
constexpr Holds either(Holds a, Holds b) { return opposite(both(opposite(a), opposite(b))); }

// Words between [ and ], as test takes them.
Holds test_holds(const std::vector<std::string>& words);
// Whether a word is what a pattern with * and ? means.
Holds matches(const std::string& word, const std::string& pattern);

}  // namespace orrery
