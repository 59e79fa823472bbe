// SPDX-License-Identifier: Apache-2.0
// Takes a list of names apart.
#include "sim/question/schedule/listed_names.h"

#include <algorithm>

#include "sim/base/text/words.h"

namespace orrery {

std::vector<std::string> listed_names(const JsonValue& list,
                                      const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const JsonValue& one : list.listed()) {
    const std::string name = one.one_of(known);
    if (std::find(names.begin(), names.end(), name) != names.end())
      list.fail("each once", name + " twice");
    names.push_back(name);
  }
  if (names.empty()) list.fail(joined(known, ", "), "nothing");
  return names;
}

}  // namespace orrery
