// SPDX-License-Identifier: Apache-2.0
// Takes a list of names apart.
#include "sim/question/schedule/listed_names.h"

#include <set>

#include "sim/base/text/words.h"

namespace orrery {

void check_each_once(const JsonValue& list) {
  std::set<std::string> seen;
  for (const JsonValue& one : list.listed())
    if (const std::string text = one.raw().dump(); !seen.insert(text).second)
      list.fail("each once", text + " twice");
}

std::vector<std::string> listed_names(const JsonValue& list,
                                      const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const JsonValue& one : list.listed()) names.push_back(one.one_of(known));
  if (names.empty()) list.fail(joined(known, ", "), "nothing");
  check_each_once(list);
  return names;
}

}  // namespace orrery
