// SPDX-License-Identifier: Apache-2.0
// Takes a list of names apart.
#include "sim/question/schedule/listed_names.h"

#include <algorithm>

#include "sim/base/json/json.h"
#include "sim/base/text/words.h"

namespace orrery {

std::vector<std::string> listed_names(const std::string& list, const char* flag,
                                      const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const JsonValue& one : JsonValue::from(list, flag).listed()) {
    const std::string name = one.one_of(known);
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw Error({.file = flag, .found = name + " twice", .expected = "each once"});
    names.push_back(name);
  }
  if (names.empty())
    throw Error({.file = flag, .found = "nothing", .expected = joined(known, ", ")});
  return names;
}

}  // namespace orrery
