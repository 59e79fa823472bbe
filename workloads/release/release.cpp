// SPDX-License-Identifier: Apache-2.0
// Takes the numbers out of a release's name.
#include "workloads/release/release.h"

#include <algorithm>

namespace orrery {

std::vector<long> release_parts(const std::string& release) {
  std::vector<long> parts;
  long value = 0;
  bool open = false;
  for (char c : release + ".") {
    if (c >= '0' && c <= '9') {
      value = std::min(value * 10 + (c - '0'), 1'000'000'000L);
      open = true;
    } else if (open) {
      parts.push_back(value);
      value = 0;
      open = false;
    }
  }
  return parts;
}

}  // namespace orrery
