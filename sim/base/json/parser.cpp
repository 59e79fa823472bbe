// SPDX-License-Identifier: Apache-2.0
// Reads JSON strictly (no duplicate keys, no depth without end, no NUL bytes) and writes its
// leaves.
#include "sim/base/json/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/json/quick.h"

namespace orrery {
namespace {

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
template <class Tree>
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(number_integer_t value) override { return place(value); }
  bool number_unsigned(number_unsigned_t value) override { return place(value); }
  bool number_float(number_float_t value, const string_t&) override { return place(value); }
  bool string(string_t& value) override { return place(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override {
    Tree array = Tree::array();
    array.elements() = std::move(open_.back().items);
    open_.pop_back();
    return place(std::move(array));
  }
  bool end_object() override {
    Tree object;
    if (!object.take(std::move(open_.back().members))) {
      duplicate = path_to_twin(object);
      return false;
    }
    open_.pop_back();
    return place(std::move(object));
  }
  bool key(string_t& name) override {
    open_.back().members.emplace_back(std::move(name), nullptr);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    offset = position;
    problem = error.what();
    return false;
  }

  Tree root;
  std::size_t offset = 0;
  std::string problem;
  std::optional<std::string> duplicate;

 private:
  struct Level {
    bool is_array;
    typename Tree::Items items;
    typename Tree::Members members;
  };

  bool open(bool is_array) {
    open_.push_back({is_array, {}, {}});
    return true;
  }
  bool place(Tree value) {
    if (open_.empty())
      root = std::move(value);
    else if (open_.back().is_array)
      open_.back().items.push_back(std::move(value));
    else
      open_.back().members.back().second = std::move(value);
    return true;
  }

  // Where the first key that stands twice in the innermost open value is, as JsonValue::path() says
  // it. That value has its members no longer; they are `object`'s.
  std::string path_to_twin(const Tree& object) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Level& level = open_[i];
      if (level.is_array)
        path += fmt::format("[{}]", level.items.size());
      else
        path += (path.empty() ? "" : ".") + level.members.back().first.substr(0, 60);
    }
    std::set<std::string_view> seen;
    for (const auto& [key, value] : object.items())
      if (!seen.insert(key).second) return path + (path.empty() ? "" : ".") + key.substr(0, 60);
    return path;
  }

  std::vector<Level> open_;
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

template <class Tree>
Tree parse_as(std::string_view text, const std::string& file) {
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
  Builder<Tree> builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    if (builder.duplicate)
      fail({.path = *builder.duplicate,
            .found = "the key twice in one object",
            .expected = "each key once"});
    fail(explain(builder.problem, text, builder.offset));
  }
  return std::move(builder.root);
}

}  // namespace

SortedJson parse_json(std::string_view text, const std::string& file) {
  if (auto root = parse_quickly(text)) return std::move(*root);
  return parse_strictly(text, file);
}

SortedJson parse_strictly(std::string_view text, const std::string& file) {
  return parse_as<SortedJson>(text, file);
}

Json parse_in_order(std::string_view text, const std::string& file) {
  return parse_as<Json>(text, file);
}

void append_json_text(std::string& out, std::string_view text) {
  const bool plain = std::ranges::all_of(
      text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain)
    out.append("\"").append(text).append("\"");
  else
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_json_number(std::string& out, double number) { out += nlohmann::json(number).dump(); }

}  // namespace orrery
