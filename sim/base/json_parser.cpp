// SPDX-License-Identifier: Apache-2.0
// Knows what strict means: no duplicate keys, no depth without end, no NUL bytes, and a place.
#include "sim/base/json_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/json_document.h"
#include "sim/base/json_quick.h"

namespace orrery {
namespace {

using nlohmann::json;

// "line 3, column 7" of a byte offset, both from 1; columns count bytes.
std::string place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_break = before.rfind('\n');
  const std::size_t column =
      before.size() - (line_break == std::string_view::npos ? 0 : line_break + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

// Offset of the bracket that opens the first level too many, or npos. Run before the parser: it
// keeps a stack of levels of its own.
std::size_t too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > json_depth_limit) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::string_view::npos;
}

// Builds the document from the parser's events; nlohmann's own builder keeps the last of two
// values with one key.
class Builder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    key_ = std::move(name);
    if (!open_.back().value->contains(key_)) return true;
    duplicate = path_to_next();
    return false;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    offset = position;
    problem = error.what();
    return false;
  }

  json root;
  std::size_t offset = 0;
  std::string problem;
  std::optional<std::string> duplicate;

 private:
  template <class T>
  bool add(T&& value) {
    place(json(std::forward<T>(value)));
    return true;
  }
  bool open(json container) {
    std::string name = next_name();
    open_.push_back({&place(std::move(container)), std::move(name)});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  json& place(json value) {
    if (open_.empty()) return root = std::move(value);
    json& parent = *open_.back().value;
    // Only the last element of an array is ever open, so growing it moves no open one.
    if (parent.is_array()) return parent.emplace_back(std::move(value));
    return parent[key_] = std::move(value);
  }

  // How the innermost open value calls the one that comes next: "name" or "[3]".
  std::string next_name() const {
    if (open_.empty()) return "";
    const json& parent = *open_.back().value;
    return parent.is_array() ? fmt::format("[{}]", parent.size()) : key_.substr(0, 60);
  }
  // Where the value that comes next stands, as JsonValue::path() says it.
  std::string path_to_next() const {
    std::string path;
    const auto append = [&path](const std::string& name) {
      path += (path.empty() || name.starts_with('[') ? "" : ".") + name;
    };
    for (const Level& level : open_) append(level.name);
    append(next_name());
    return path;
  }

  struct Level {
    json* value;
    std::string name;
  };
  std::vector<Level> open_;
  std::string key_;
};

// nlohmann's "[...] parse error at line 1, column 2: syntax error while parsing value - unexpected
// '}'; expected string literal" in our form.
ErrorInfo explain(std::string_view problem, std::string_view text, std::size_t offset) {
  const std::size_t start = problem.find(" - ");
  if (start != std::string_view::npos) problem.remove_prefix(start + 3);
  ErrorInfo info{.expected = "valid JSON"};
  const std::size_t expected = problem.rfind("; expected ");
  if (expected != std::string_view::npos) {
    info.expected = problem.substr(expected + 11);
    problem = problem.substr(0, expected);
  }
  // The text that was read last may be long, or not UTF-8.
  problem = problem.substr(0, problem.find("; last read: "));
  // A number too large for a double comes without the reason's prefix.
  if (problem.find("number overflow") != std::string_view::npos)
    problem = "a number that a double cannot hold";
  info.found = fmt::format("{} at {}", problem, place(text, offset > 0 ? offset - 1 : 0));
  return info;
}

}  // namespace

json parse_json(std::string_view text, const std::string& file) {
  if (auto root = parse_quickly(text)) return std::move(*root);
  return parse_strictly(text, file);
}

json parse_strictly(std::string_view text, const std::string& file) {
  const auto fail = [&file](ErrorInfo info) {
    info.file = file;
    throw Error(std::move(info));
  };
  if (text.empty()) fail({.found = "an empty file", .expected = "a JSON value"});
  if (text.size() > json_size_limit)
    fail({.found = "more than 64 MiB", .expected = "JSON of at most 64 MiB"});
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail({.found = "a NUL byte at " + place(text, nul), .expected = "JSON text"});
  if (const std::size_t deep = too_deep(text); deep != std::string_view::npos)
    fail({.found = "a 65th level of nesting at " + place(text, deep),
          .expected = "JSON nested at most 64 deep"});
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    if (builder.duplicate)
      fail({.path = *builder.duplicate,
            .found = "the key twice in one object",
            .expected = "each key once"});
    fail(explain(builder.problem, text, builder.offset));
  }
  return std::move(builder.root);
}

}  // namespace orrery
