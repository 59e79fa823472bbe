// SPDX-License-Identifier: Apache-2.0
// Reads TOML, JSON and lines of Python as names and values.
#include <stdexcept>

// Text that the library did not foresee ends in one of its assertions: a refusal here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"  // some stand where nothing may throw
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(holds) \
  (static_cast<bool>(holds) ? static_cast<void>(0) : throw std::logic_error("text that is no TOML"))
#define TOML_ASSERT_ASSUME(holds) TOML_ASSERT(holds)

#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include <cctype>
#include <cmath>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"
#include "sim/base/json/quick.h"
#include "sim/launch/source/marks.h"
#include "sim/launch/source/trees.h"

namespace orrery {
namespace {

[[noreturn]] void too_deep(const std::string& place) {
  throw Error({.file = place,
               .found = fmt::format("more than {} levels", deepest_sections),
               .expected = "a configuration that nests fewer"});
}

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

template <class T>
std::string as_text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

SortedJson toml_value(const toml::node& node, const std::string& file, int depth) {
  if (depth > deepest_sections) too_deep(fmt::format("{}:{}", file, node.source().begin.line));
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point())
    return std::isfinite(number->get()) ? SortedJson(number->get()) : SortedJson("inf");
  if (const auto* truth = node.as_boolean()) return truth->get();
  if (const auto* list = node.as_array()) {
    SortedJson out = SortedJson::array();
    for (const toml::node& item : *list) out.push_back(toml_value(item, file, depth + 1));
    return out;
  }
  if (const auto* table = node.as_table()) {
    SortedJson out = SortedJson::object();
    for (const auto& [key, value] : *table)
      out[std::string(key.str())] = toml_value(value, file, depth + 1);
    return out;
  }
  if (const auto* day = node.as_date()) return as_text(day->get());
  if (const auto* time = node.as_time()) return as_text(time->get());
  if (const auto* both = node.as_date_time()) return as_text(both->get());
  return {};
}

void toml_leaves(const toml::table& table, const std::string& path, const std::string& file,
                 int depth, std::vector<Said>& out) {
  for (const auto& [key, value] : table) {
    const std::string name = below(path, key.str());
    const auto line = static_cast<std::int64_t>(key.source().begin.line);
    if (depth > deepest_sections) too_deep(fmt::format("{}:{}", file, line));
    if (const auto* inner = value.as_table(); inner != nullptr && !inner->empty())
      toml_leaves(*inner, name, file, depth + 1, out);
    else
      out.push_back({file, line, name, toml_value(value, file, depth + 1)});
  }
}

void json_leaves(const SortedJson& object, const std::string& path, const std::string& file,
                 std::vector<Said>& out) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = below(path, key);
    if (value.is_object() && !value.empty())
      json_leaves(value, name, file, out);
    else
      out.push_back({file, 0, name, value});
  }
}

class PythonValue {
 public:
  explicit PythonValue(std::string_view text) : left_(text) {}
  std::optional<SortedJson> whole() {
    std::optional<SortedJson> value = one(0);
    blanks();
    if (left_.starts_with('#')) left_ = {};
    return left_.empty() ? value : std::nullopt;
  }

 private:
  void blanks() {
    while (!left_.empty() && std::isspace(static_cast<unsigned char>(left_.front())) != 0)
      left_.remove_prefix(1);
  }
  bool takes(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  std::optional<SortedJson> one(int depth) {
    blanks();
    if (depth > 8 || left_.empty()) return std::nullopt;
    if (takes("True")) return SortedJson(true);
    if (takes("False")) return SortedJson(false);
    if (takes("None")) return SortedJson();
    const char c = left_.front();
    if (c == '"' || c == '\'') return text(c);
    if (c == '[' || c == '(') return list(c == '[' ? ']' : ')', depth);
    const std::size_t end = std::min(left_.find_first_not_of("0123456789+-.eE_"), left_.size());
    std::string digits;
    for (const char d : left_.substr(0, end))
      if (d != '_') digits += d;
    const auto number = parse_quickly(digits);
    if (!number || !number->is_number()) return std::nullopt;
    left_.remove_prefix(end);
    return *number;
  }
  std::optional<SortedJson> text(char quote) {
    const std::size_t end = left_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string inside(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return SortedJson(inside);
  }
  std::optional<SortedJson> list(char close, int depth) {
    left_.remove_prefix(1);
    SortedJson out = SortedJson::array();
    for (blanks(); !left_.empty() && left_.front() != close; blanks()) {
      auto item = one(depth + 1);
      if (!item) return std::nullopt;
      out.push_back(std::move(*item));
      blanks();
      if (!left_.empty() && left_.front() == ',') left_.remove_prefix(1);
    }
    if (left_.empty()) return std::nullopt;
    left_.remove_prefix(1);
    return out;
  }
  std::string_view left_;
};

// "llama3_70b" of `llm.llama3_70b.pretrain_recipe(`; empty: the line makes no recipe.
std::string recipe_in(std::string_view row) {
  const std::size_t end = row.find("_recipe(");
  if (end == std::string_view::npos) return "";
  const std::size_t dot = row.rfind('.', end);
  if (dot == std::string_view::npos || dot == 0) return "";
  const std::size_t begin = row.find_last_of(".= (", dot - 1);
  if (begin == std::string_view::npos) return "";
  return std::string(row.substr(begin + 1, dot - begin - 1));
}

bool is_dotted_name(std::string_view text) {
  if (text.find('.') == std::string_view::npos) return false;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') return false;
  return !text.starts_with('.') && !text.ends_with('.');
}

}  // namespace

std::vector<Said> read_toml(const std::string& text, const std::string& file) {
  int deep = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++deep;
    if (c == ']' || c == '}' || c == '\n') deep = c == '\n' ? deep : std::max(0, deep - 1);
    if (deep > 4 * deepest_sections) too_deep(file);
  }
  std::vector<Said> out;
  try {
    toml_leaves(toml::parse(text, file), "", file, 0, out);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    for (char& c : what)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    const auto line = error.source().begin.line;
    throw Error({.file = line > 0 ? fmt::format("{}:{}", file, line) : file,
                 .found = what,
                 .expected = "TOML"});
  } catch (const std::logic_error& error) {
    throw Error({.file = file, .found = error.what(), .expected = "TOML"});
  }
  return out;
}

std::vector<Said> read_json_sections(const std::string& text, const std::string& file) {
  const JsonValue document = JsonValue::parse(text, file);
  if (!document.is_object()) document.fail("an object of settings");
  return json_sections(document.raw(), file);
}

std::vector<Said> json_sections(const SortedJson& object, const std::string& file) {
  std::vector<Said> out;
  json_leaves(object, "", file, out);
  return out;
}

std::vector<Said> read_python(const std::string& text, const std::string& file) {
  std::vector<Said> out;
  std::int64_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line;
    if (const std::string recipe = recipe_in(row); !recipe.empty())
      out.push_back({file, line, "recipe.name", recipe});
    const std::size_t equals = row.find('=');
    if (equals == std::string_view::npos || row.substr(equals).starts_with("==")) continue;
    std::string_view name = row.substr(0, equals), value = row.substr(equals + 1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
    while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
      value.remove_prefix(1);
    while (!value.empty() && (value.back() == '\r' || value.back() == ' ')) value.remove_suffix(1);
    if (!is_dotted_name(name)) continue;
    const auto known = PythonValue(value).whole();
    const bool is_call = value.ends_with(')') || is_dotted_name(value);
    // Names of variables and what is computed cannot be told; what begins as a number is one.
    const bool begins =
        !value.empty() && (std::isalpha(static_cast<unsigned char>(value[0])) != 0 ||
                           value[0] == '_' || value[0] == '(' || value[0] == '[');
    if (!known && !begins)
      throw Error({.file = fmt::format("{}:{}", file, line),
                   .path = std::string(name),
                   .found = value.empty() ? "nothing" : in_quotes(value),
                   .expected = "a value of Python"});
    out.push_back({file, line, std::string(name),
                   known     ? *known
                   : is_call ? SortedJson(std::string(value))
                             : SortedJson(marked(value))});
  }
  return out;
}

}  // namespace orrery
