// SPDX-License-Identifier: Apache-2.0
// Lists the leaves of JSON, so that two documents are compared value by value.
#include "sim/base/json/leaves.h"

#include <fmt/format.h>

namespace orrery {
namespace {

// A key as a JSON pointer writes it.
std::string escaped(const std::string& key) {
  std::string text;
  for (const char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

void add_leaves(const SortedJson& value, const std::string& path,
                std::map<std::string, SortedJson>& leaves) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items())
      add_leaves(member, path + "/" + escaped(key), leaves);
  } else if (value.is_array() && !value.empty()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      add_leaves(value[i], fmt::format("{}/{}", path, i), leaves);
  } else {
    leaves.emplace(path, value.is_structured() ? SortedJson() : value);
  }
}

}  // namespace

std::map<std::string, SortedJson> leaves_of(const SortedJson& value) {
  std::map<std::string, SortedJson> leaves;
  add_leaves(value, "", leaves);
  return leaves;
}

}  // namespace orrery
