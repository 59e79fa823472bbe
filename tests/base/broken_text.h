// SPDX-License-Identifier: Apache-2.0
// Breaks good texts and good JSON in ways that people and machines do.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/tree.h"
#include "sim/base/random.h"

namespace orrery::test {

// Pieces that break grammars more often than random bytes do.
inline constexpr std::array<std::string_view, 22> breaking_pieces = {
    "{",   "}",    "[",    "]",  "\"", ":",    ",",    "\\", "\\u", "\\ud800", "NaN",
    "1e9", "null", "true", "//", "/*", "\xff", "\xc3", "-",  "/",   "e",       "99999999999"};

// Changes some bytes of a valid text, or cuts, repeats and splices it.
inline std::string broken_text(std::string text, RandomStream& random) {
  const auto place = [&] { return random.below(text.size() + 1); };
  for (auto left = random.below(6); left > 0; --left) {
    switch (random.below(6)) {
      case 0:
        if (!text.empty()) text[random.below(text.size())] = static_cast<char>(random.next());
        break;
      case 1:
        text.insert(place(), breaking_pieces[random.below(breaking_pieces.size())]);
        break;
      case 2:
        text.erase(place(), random.below(8));
        break;
      case 3:
        text.resize(place());
        break;
      case 4:
        text.insert(place(), text.substr(place(), random.below(40)));
        break;
      default:
        text.insert(place(), 1, static_cast<char>(random.next()));
        break;
    }
  }
  return text;
}

// Puts something else in the place of one value, or takes it away.
inline SortedJson broken_json(SortedJson json, RandomStream& random) {
  SortedJson* at = &json;
  SortedJson* parent = nullptr;
  std::string key;
  std::size_t index = 0;
  while ((at->is_object() || at->is_array()) && !at->empty() &&
         (parent == nullptr || random.below(4) > 0)) {
    parent = at;
    index = random.below(at->size());
    if (at->is_object()) key = std::next(at->begin(), static_cast<std::ptrdiff_t>(index)).key();
    at = at->is_object() ? &(*at)[key] : &(*at)[index];
  }
  if (parent == nullptr) return SortedJson::array();
  const SortedJson others[] = {nullptr,
                               "",
                               "text",
                               -1,
                               0,
                               1e300,
                               std::numeric_limits<std::int64_t>::max(),
                               0.5,
                               true,
                               SortedJson::array(),
                               SortedJson::object(),
                               SortedJson::array({1, "a"})};
  const std::size_t choice = random.below(std::size(others) + 2);
  if (choice < std::size(others)) {
    *at = others[choice];
  } else if (parent->is_array()) {
    SortedJson rest = SortedJson::array();
    for (std::size_t i = 0; i < parent->size(); ++i)
      if (i != index) rest.push_back((*parent)[i]);
    *parent = std::move(rest);
  } else {
    if (choice > std::size(others)) (*parent)[key + "x"] = *at;
    parent->erase(key);
  }
  return json;
}

}  // namespace orrery::test
