// SPDX-License-Identifier: Apache-2.0
// Writes YAML.
#include "sim/launch/serving/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

constexpr std::string_view safe =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=";

// Words that YAML 1.1 or 1.2 reads as no text.
bool is_word_of_yaml(std::string text) {
  constexpr std::array<std::string_view, 10> words = {"true", "false", "yes", "no", "on",
                                                      "off",  "null",  "y",   "n",  "~"};
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(words.begin(), words.end(), text) != words.end();
}

// What begins with a letter, a slash, or two hyphens as flags do is neither a number nor a list.
bool is_plain(const std::string& text) {
  if (text.empty() || text.find_first_not_of(std::string(safe) + ":") != text.npos) return false;
  if (text.back() == ':' || is_word_of_yaml(text)) return false;
  const auto first = static_cast<unsigned char>(text.front());
  return std::isalpha(first) != 0 || first == '/' ||
         (text.starts_with("--") && text.size() > 2 && text[2] != '-');
}

std::string quoted(const std::string& text) {
  const bool controls =
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (controls || text.find('"') == text.npos) return Json(text).dump();
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

class Writer {
 public:
  std::string out;

  void object(const Json& value, std::size_t indent) {
    for (const auto& [name, member] : value.items()) {
      out += std::string(indent, ' ') + (is_plain(name) ? name : quoted(name)) + ":";
      below(member, indent);
    }
  }

 private:
  // What stands after a key.
  void below(const Json& value, std::size_t indent) {
    if (value.is_object() && !value.empty()) {
      out += "\n";
      object(value, indent + 2);
    } else if (value.is_array() && !value.empty()) {
      out += "\n";
      list(value, indent + 2);
    } else {
      out += " ";
      scalar(value, indent + 2);
    }
  }

  void list(const Json& value, std::size_t indent) {
    for (const Json& item : value.elements()) {
      out += std::string(indent, ' ') + "- ";
      if (item.is_object() && !item.empty()) {
        // The first member stands beside the hyphen.
        const std::size_t from = out.size();
        object(item, indent + 2);
        out.erase(from, indent + 2);
      } else {
        CHECK_THAT(!item.is_array(), "a list in a list");
        scalar(item, indent + 2);
      }
    }
  }

  void scalar(const Json& value, std::size_t indent) {
    if (!value.is_string()) {
      out += value.dump() + "\n";
      return;
    }
    const std::string& text = value.text();
    if (text.find('\n') == text.npos) {
      out += (is_plain(text) ? text : quoted(text)) + "\n";
      return;
    }
    out += text.back() == '\n' ? "|\n" : "|-\n";
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = std::min(text.find('\n', from), text.size());
      if (end > from) out += std::string(indent, ' ') + text.substr(from, end - from);
      out += "\n";
      from = end + 1;
    }
  }
};

}  // namespace

std::string to_yaml(const Json& value) {
  CHECK_THAT(value.is_object(), "a document is an object");
  Writer writer;
  writer.object(value, 0);
  return writer.out;
}

std::string to_yaml(const std::string& comment, const std::vector<Json>& documents) {
  std::string out = comment;
  for (const Json& document : documents) out += "---\n" + to_yaml(document);
  return out;
}

}  // namespace orrery
