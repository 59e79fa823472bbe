// SPDX-License-Identifier: Apache-2.0
// Finds two types of one name in one namespace: programs mix their functions up, unseen.
#include <fmt/format.h>

#include <map>
#include <regex>

#include "tests/base/tidy.h"

namespace orrery {

Complaints check_definitions(const SourceTree& tree) {
  static const std::regex type(R"(^(struct|class|enum class) (\w+)( final)?( :.*)? \{.*)");
  static const std::regex opens(R"(^namespace ([\w:]+) \{)");
  Complaints complaints;
  std::map<std::string, std::string> first;  // where a name is defined
  for (const auto& [path, text] : tree) {
    if (!is_code(path) || path.starts_with("tests/")) continue;
    std::string space;
    bool own = false;  // in the file's own namespace, which has no name
    std::size_t number = 0;
    for (const std::string_view view : lines_of(text)) {
      const std::string line(view);
      ++number;
      std::smatch found;
      if (std::regex_match(line, found, opens)) space = found[1];
      if (line == "namespace {") own = true;
      if (line == "}  // namespace") own = false;
      if (own || !std::regex_match(line, found, type)) continue;
      const auto [at, fresh] = first.emplace(space + "::" + found[2].str(), path);
      if (!fresh)
        complaints.push_back(
            complaint(path, number, fmt::format("{} stands in {} too", at->first, at->second)));
    }
  }
  return complaints;
}

}  // namespace orrery
