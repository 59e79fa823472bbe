// SPDX-License-Identifier: Apache-2.0
// Makes names of objects.
#include "sim/launch/object_name.h"

#include <cctype>

namespace orrery {

std::string object_label(std::string_view text, std::size_t most) {
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 128 && std::isalnum(byte) != 0;
    if (plain)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  name = name.substr(0, most);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

}  // namespace orrery
