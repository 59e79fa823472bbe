// SPDX-License-Identifier: Apache-2.0
// Resolves references between settings of one file.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "sim/base/json/quick.h"
#include "sim/launch/source/marks.h"
#include "sim/launch/source/trees.h"

namespace orrery {
namespace {

constexpr int most_steps = 8;  // of references to references

bool is_variable(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  });
}

SortedJson plain_value(std::string text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  const auto number = parse_quickly(text);
  if (number && (number->is_number() || number->is_boolean())) return *number;
  return text;
}

// The default of a variable that nobody sets here.
std::optional<SortedJson> default_of(std::string inside) {
  const std::string environment = "oc.env:";
  char sign = ':';
  if (inside.starts_with(environment)) {
    inside.erase(0, environment.size());
    sign = ',';
  }
  const std::size_t at = inside.find(sign);
  if (at == std::string::npos || !is_variable(std::string_view(inside).substr(0, at)))
    return std::nullopt;
  return plain_value(inside.substr(at + 1));
}

class References {
 public:
  explicit References(const std::vector<Said>& said) {
    for (const Said& one : said) values_.emplace(one.name, &one.value);
  }
  SortedJson resolved(const std::string& name, const SortedJson& value, int step = 0) const {
    if (!value.is_string()) return value;
    const std::string& text = value.text();
    if (text.find("${") == std::string::npos) return value;
    const bool whole = text.starts_with("${") && text.find('}') == text.size() - 1 &&
                       text.find("${", 2) == std::string::npos;
    if (!whole || step >= most_steps) return marked(text);
    const std::string inside = text.substr(2, text.size() - 3);
    if (const auto other = default_of(inside)) return *other;
    const std::string path = inside.starts_with('.') ? section_of(name) + inside : inside;
    const auto at = values_.find(path);
    if (at == values_.end()) return marked(text);
    return resolved(path, *at->second, step + 1);
  }

 private:
  static std::string section_of(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? "" : name.substr(0, dot);
  }
  std::map<std::string, const SortedJson*> values_;
};

}  // namespace

void resolve_references(std::vector<Said>& said) {
  const References references(said);
  std::vector<SortedJson> values;
  values.reserve(said.size());
  for (const Said& one : said) values.push_back(references.resolved(one.name, one.value));
  for (std::size_t i = 0; i < said.size(); ++i) said[i].value = std::move(values[i]);
}

}  // namespace orrery
