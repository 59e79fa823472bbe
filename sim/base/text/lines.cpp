// SPDX-License-Identifier: Apache-2.0
// Finds ends of lines.
#include "sim/base/text/lines.h"

#include <algorithm>

namespace orrery {

std::string_view next_line(std::string_view& text, std::size_t& number) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  ++number;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(blank_characters) == std::string_view::npos;
}

}  // namespace orrery
