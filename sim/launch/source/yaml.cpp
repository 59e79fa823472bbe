// SPDX-License-Identifier: Apache-2.0
// Reads YAML: one document, every alias counted where it is used.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "sim/base/errors/check.h"
#include "sim/base/json/quick.h"
#include "sim/launch/source/trees.h"

namespace orrery {
namespace {

// What the library lets pass or cannot bear, found before it reads: quotes that do not end, and
// brackets deeper than any configuration has (its reading calls itself for each level).
class YamlCheck {
 public:
  YamlCheck(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  void all() {
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      ++line_;
      row(std::string_view(text_).substr(at, end - at));
      at = end + 1;
    }
    if (quote_ != '\0') fail(opened_, "a quote that does not end", "YAML");
  }

 private:
  [[noreturn]] void fail(std::int64_t line, std::string found, std::string expected) const {
    throw Error({.file = fmt::format("{}:{}", file_, line),
                 .found = std::move(found),
                 .expected = std::move(expected)});
  }

  void row(std::string_view text) {
    const std::size_t indent = std::min(text.find_first_not_of(" -"), text.size());
    if (quote_ == '\0' && block_ >= 0) {
      // Lines of a block of text stand further in than the key before it.
      if (indent == text.size() ||
          static_cast<std::ptrdiff_t>(text.find_first_not_of(' ')) > block_)
        return;
      block_ = -1;
    }
    const auto dashes =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(indent), '-');
    if (dashes > deepest_sections) too_deep();
    char before = ':';
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quote_ != '\0') {
        inside_quote(text, i);
        continue;
      }
      if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) break;
      const bool begins = std::string_view(":,[{-?(").find(before) != std::string_view::npos;
      if ((c == '"' || c == '\'') && begins) {
        quote_ = c;
        opened_ = line_;
      }
      if (c == '[' || c == '{') flow_ += 1;
      if (c == ']' || c == '}') flow_ = std::max(0, flow_ - 1);
      if ((c == '?' || c == '!' || c == '&') && begins) ++marks_;
      if (flow_ > deepest_sections || marks_ > 10'000) too_deep();
      if (c != ' ' && c != '\t' && c != '\r') before = c;
    }
    const bool block = quote_ == '\0' && flow_ == 0 && ends_in_block_sign(text);
    if (block)
      block_ = static_cast<std::ptrdiff_t>(std::min(text.find_first_not_of(' '), text.size()));
  }

  void inside_quote(std::string_view text, std::size_t& i) {
    if (quote_ == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote_) {
      if (quote_ == '\'' && i + 1 < text.size() && text[i + 1] == quote_)
        ++i;
      else
        quote_ = '\0';
    }
  }

  static bool ends_in_block_sign(std::string_view text) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
    if (text.ends_with('-') || text.ends_with('+')) text.remove_suffix(1);
    return text.ends_with(": |") || text.ends_with(": >") || text.ends_with("- |") ||
           text.ends_with("- >");
  }

  [[noreturn]] void too_deep() const {
    fail(line_, fmt::format("more than {} levels", deepest_sections), "YAML that nests fewer");
  }

  const std::string& text_;
  const std::string& file_;
  std::int64_t line_ = 0, opened_ = 0;
  std::ptrdiff_t block_ = -1;  // where the key of a block of text stands
  int flow_ = 0, marks_ = 0;
  char quote_ = '\0';
};

class Yaml {
 public:
  explicit Yaml(const std::string& file) : file_(file) {}

  void leaves(const YAML::Node& node, const std::string& path, int depth, std::vector<Said>& out) {
    count(node, depth);
    if (!node.IsMap() || node.size() == 0)
      return out.push_back({file_, line_of(node), path, value(node, depth)});
    std::set<std::string> seen;
    for (const auto& member : node) {
      const std::string key = name_of(member.first);
      if (!seen.insert(key).second)
        fail(line_of(member.first), fmt::format("the key {} twice in one section", in_quotes(key)),
             "each once");
      leaves(member.second, path.empty() ? key : path + "." + key, depth + 1, out);
      // A leaf stands where its key does.
      if (!out.empty() && !member.second.IsMap()) out.back().line = line_of(member.first);
    }
  }

 private:
  [[noreturn]] void fail(std::int64_t line, std::string found, std::string expected) const {
    throw Error({.file = line > 0 ? fmt::format("{}:{}", file_, line) : file_,
                 .found = std::move(found),
                 .expected = std::move(expected)});
  }
  static std::int64_t line_of(const YAML::Node& node) { return node.Mark().line + 1; }

  void count(const YAML::Node& node, int depth) {
    if (depth > deepest_sections)
      fail(line_of(node), fmt::format("more than {} levels", deepest_sections),
           "YAML that nests fewer");
    if (++values_ > most_values)
      fail(line_of(node), fmt::format("more than {} values", most_values), "a configuration");
  }
  std::string name_of(const YAML::Node& key) const {
    if (!key.IsScalar()) fail(line_of(key), "a key that is no name", "a name");
    return key.Scalar();
  }

  SortedJson value(const YAML::Node& node, int depth) {
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return {};
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Sequence: {
        SortedJson list = SortedJson::array();
        for (const auto& item : node) {
          count(item, depth + 1);
          list.push_back(value(item, depth + 1));
        }
        return list;
      }
      case YAML::NodeType::Map: {
        SortedJson object = SortedJson::object();
        for (const auto& member : node) {
          count(member.second, depth + 1);
          object[name_of(member.first)] = value(member.second, depth + 1);
        }
        return object;
      }
    }
    return {};
  }

  // What YAML 1.1 and 1.2 agree on, and PyYAML's true and false in words.
  static SortedJson scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return text;  // in quotes
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
      return {};
    for (const char* yes : {"true", "True", "TRUE", "yes", "Yes", "on", "On"})
      if (text == yes) return true;
    for (const char* no : {"false", "False", "FALSE", "no", "No", "off", "Off"})
      if (text == no) return false;
    if (const auto number = plain_number(text)) return *number;
    return text;
  }
  static std::optional<SortedJson> plain_number(const std::string& text) {
    std::string digits;
    for (const char c : text)
      if (c != '_') digits += c;  // 1_000_000
    if (digits.empty() || digits.find_first_not_of("0123456789+-.eE") != std::string::npos)
      return std::nullopt;
    if (digits.front() == '+') digits.erase(0, 1);
    const bool whole = digits.find_first_of(".eE") == std::string::npos;
    if (whole) {
      const auto number = parse_quickly(digits);
      if (number && number->is_number()) return *number;
      return std::nullopt;
    }
    char* end = nullptr;
    const double number = std::strtod(digits.c_str(), &end);
    if (*end != '\0' || !std::isfinite(number)) return std::nullopt;
    if (number == std::floor(number) && std::abs(number) < 9e15)
      return SortedJson(static_cast<std::int64_t>(number));
    return SortedJson(number);
  }

  const std::string& file_;
  std::size_t values_ = 0;
};

}  // namespace

std::vector<Said> read_yaml(const std::string& text, const std::string& file) {
  YamlCheck(text, file).all();
  std::vector<Said> out;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() != 1)
      throw Error({.file = file,
                   .found = fmt::format("{} documents", documents.size()),
                   .expected = "one"});
    if (!documents.front().IsMap())
      throw Error({.file = file, .found = "YAML without keys", .expected = "a configuration"});
    Yaml(file).leaves(documents.front(), "", 0, out);
  } catch (const YAML::Exception& error) {
    std::string what = error.msg;
    for (char& c : what)
      if (c == '\n') c = ' ';
    throw Error(
        {.file = error.mark.is_null() ? file : fmt::format("{}:{}", file, error.mark.line + 1),
         .found = what.empty() ? "text that is no YAML" : what,
         .expected = "YAML"});
  }
  return out;
}

}  // namespace orrery
