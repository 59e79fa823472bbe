// SPDX-License-Identifier: Apache-2.0
// Quotes words for shells.
#include "sim/base/text/shell.h"

namespace orrery {

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-+.,:/@=%") == std::string::npos;
  return plain ? text : shell_quoted(text);
}

}  // namespace orrery
