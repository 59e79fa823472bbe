// SPDX-License-Identifier: Apache-2.0
// Writes ASCII letters small, as catalogues spell names.
#pragma once

#include <string>

namespace orrery {

constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string lower_case(std::string text) {
  for (char& c : text) c = lower_case(c);
  return text;
}

}  // namespace orrery
