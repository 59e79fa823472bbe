// SPDX-License-Identifier: Apache-2.0
// Knows how often a text holds another.
#pragma once

#include <string>

namespace orrery {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace orrery
