// SPDX-License-Identifier: Apache-2.0
// Puts values in place of variables.
#include "sim/launch/source/shell_variables.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/source/marks.h"

namespace orrery {
namespace {

// Far above what a launch script makes of its variables, low enough to be done at once.
constexpr std::size_t most_text = std::size_t{16} << 20U;
constexpr int deepest_values = 32;

bool divides_words(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

void ShellVariables::grow(std::size_t size, std::int64_t line) {
  made_ += size;
  if (made_ > most_text)
    throw Error({.file = fmt::format("{}:{}", file_, line),
                 .found = fmt::format("variables of more than {} MiB", most_text >> 20U),
                 .expected = "a script whose variables do not grow without end"});
}

std::string ShellVariables::Value::text() const {
  std::string out;
  for (const ShellWord& value : values) out += (out.empty() ? "" : " ") + value.text;
  return out;
}

void ShellVariables::set(const std::string& name, std::vector<ShellWord> values, bool list) {
  variables_[name] = {std::move(values), list};
}

void ShellVariables::append(const std::string& name, const std::vector<ShellWord>& values,
                            bool list) {
  Value& value = variables_[name];
  if (list || value.list) {
    value.list = true;
    value.values.insert(value.values.end(), values.begin(), values.end());
    return;
  }
  if (value.values.empty()) value.values.push_back({"", values.front().line});
  for (const ShellWord& more : values) value.values.front().text += more.text;
  grow(value.values.front().text.size(), values.front().line);
}

static std::string marked_words(const std::string& text, std::int64_t line) {
  std::string out, word;
  for (const char c : text + ' ') {
    if (!divides_words(c)) {
      word += c;
      continue;
    }
    if (!word.empty()) out += marked_condition(word, line);
    word.clear();
    out += c;
  }
  out.pop_back();
  return out;
}

void ShellVariables::set_under_condition(const std::string& name,
                                         const std::vector<ShellWord>& values, How how) {
  const auto at = variables_.find(name);
  const std::vector<ShellWord> before =
      at == variables_.end() ? std::vector<ShellWord>{} : at->second.values;
  const auto same = [](const ShellWord& a, const ShellWord& b) { return a.text == b.text; };
  const bool equal = std::equal(before.begin(), before.end(), values.begin(), values.end(), same);
  if (at != variables_.end() && !how.appends && equal) return;
  const std::int64_t line = values.empty() ? 0 : values.front().line;
  const auto open = [&] {
    set(name, {{marked(fmt::format("${}, set under a condition in line {}", name, line)), line}},
        false);
  };
  if (how.list) {
    const bool longer = values.size() >= before.size() && !before.empty() &&
                        std::equal(before.begin(), before.end(), values.begin(), same);
    if (!how.appends && !longer) return open();
    std::vector<ShellWord> all = before;
    for (std::size_t i = how.appends ? 0 : before.size(); i < values.size(); ++i)
      all.push_back({marked_condition(values[i].text, values[i].line), values[i].line});
    return set(name, std::move(all), true);
  }
  const std::string old = before.empty() ? "" : before.front().text;
  const std::string text = how.appends ? old + values.front().text : values.front().text;
  if (old.empty() || text.size() <= old.size() || !text.starts_with(old)) return open();
  set(name, {{old + marked_words(text.substr(old.size()), line), before.front().line}}, false);
}

void ShellVariables::forget(const std::string& name, const std::string& why) {
  variables_[name] = {{{marked(why), 0}}, false};
}

bool ShellVariables::is_list(const std::string& name) const {
  const auto at = variables_.find(name);
  return at != variables_.end() && at->second.list;
}

std::optional<std::string> ShellVariables::known(const std::string& name) const {
  const auto at = variables_.find(name);
  if (at == variables_.end()) return std::nullopt;
  return at->second.values.empty() ? "" : at->second.values.front().text;
}

ShellVariables::Part ShellVariables::plain(const std::string& name) const {
  const auto at = variables_.find(name);
  if (at == variables_.end()) return {{{marked("$" + name), 0}}, false};
  if (at->second.values.empty()) return {{{"", 0}}, false};
  return {{at->second.values.front()}, false};
}

ShellVariables::Part ShellVariables::braces(const std::string& text, std::int64_t line,
                                            bool quoted) {
  const auto unknown = [&] { return Part{{{marked("${" + text + "}"), 0}}, false}; };
  const bool counts = text.starts_with('#') && text.size() > 1;
  std::size_t end = counts ? 1 : 0;
  const std::size_t begin = end;
  while (end < text.size() && is_name_sign(text[end])) ++end;
  const std::string name = text.substr(begin, end - begin);
  if (name.empty()) return unknown();
  std::string rest = text.substr(end);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) {
    const bool joins = rest.starts_with("[*]") && quoted;
    rest.erase(0, 3);
    const auto at = variables_.find(name);
    if (counts && at != variables_.end())
      return {{{std::to_string(at->second.values.size()), 0}}, false};
    if (counts || !rest.empty()) return unknown();
    if (at == variables_.end()) return unknown();
    if (joins) return {{{at->second.text(), 0}}, false};
    return {at->second.values, true};
  }
  if (counts) return unknown();
  if (rest.starts_with('[')) {
    const auto at = variables_.find(name);
    const std::size_t close = rest.find(']');
    if (at == variables_.end() || close == std::string::npos || close + 1 != rest.size())
      return unknown();
    const auto index = number(rest.substr(1, close - 1), line);
    if (!index || *index < 0 || *index >= static_cast<std::int64_t>(at->second.values.size()))
      return unknown();
    return {{at->second.values[static_cast<std::size_t>(*index)]}, false};
  }
  if (rest.empty()) return plain(name);
  const auto value = known(name);
  const bool colon = rest.starts_with(':');
  const char sign = rest[colon ? 1 : 0];
  if (rest.size() < (colon ? 2U : 1U) || std::string_view("-=+?").find(sign) == std::string::npos)
    return unknown();
  const bool given = value && !(colon && value->empty());
  const auto other = [&] {
    return word(shell_parts(rest.substr(colon ? 2 : 1), quoted, file_, line), line);
  };
  if (sign == '+') return {{{given ? other() : "", 0}}, false};
  if (given) return plain(name);
  if (sign == '?') return {{{marked("$" + name), 0}}, false};
  const std::string otherwise = other();
  if (sign == '=') set(name, {{otherwise, line}}, false);
  return {{{otherwise, 0}}, false};
}

ShellVariables::Part ShellVariables::expanded(const WordPart& part, std::int64_t line) {
  switch (part.kind) {
    case WordPart::Kind::literal:
      return {{{part.text, 0}}, false};
    case WordPart::Kind::command:
      return {{{marked(fmt::format("$({})", part.text.substr(0, 30))), 0}}, false};
    case WordPart::Kind::arithmetic:
      if (const auto value = number(part.text, line)) return {{{std::to_string(*value), 0}}, false};
      return {{{marked(fmt::format("$(({}))", part.text.substr(0, 30))), 0}}, false};
    case WordPart::Kind::variable:
      break;
  }
  if (part.text == "@" || part.text == "*") {
    const auto at = variables_.find(part.text);
    if (at == variables_.end()) return {{{marked("$" + part.text), 0}}, true};
    return {at->second.values, true};
  }
  const bool name = std::all_of(part.text.begin(), part.text.end(), is_name_sign);
  if (name || part.text.size() == 1) return plain(part.text);
  if (++depth_ > deepest_values)
    throw Error({.file = fmt::format("{}:{}", file_, line),
                 .found = fmt::format("more than {} levels of ${{..}}", deepest_values),
                 .expected = "a script that nests fewer"});
  Part out = braces(part.text, line, part.quoted);
  --depth_;
  return out;
}

std::vector<ShellWord> ShellVariables::words(const std::vector<WordPart>& parts, std::int64_t line,
                                             bool split) {
  std::vector<ShellWord> out;
  ShellWord word{"", line};
  bool begun = false, no_list = false;  // "$@" without arguments is no word, not an empty one
  const auto end_word = [&] {
    if (begun && !(no_list && word.text.empty())) out.push_back(std::move(word));
    word = {"", line};
    begun = false;
  };
  for (const WordPart& part : parts) {
    const Part value = expanded(part, line);
    const bool literal = part.kind == WordPart::Kind::literal;
    no_list = no_list || (value.list && value.values.empty());
    for (std::size_t i = 0; i < value.values.size(); ++i) {
      if (i > 0 && split) end_word();
      if (i > 0 && !split) word.text += ' ';
      const std::string& text = value.values[i].text;
      // A word that a variable begins stands where that was set.
      if (word.text.empty() && value.values[i].line > 0) word.line = value.values[i].line;
      grow(text.size(), line);
      if (literal || part.quoted || !split) {
        begun = begun || literal || part.quoted || !text.empty();
        word.text += text;
        continue;
      }
      bool inside = false;  // a mark, whose blanks are no blanks of the text
      for (const char c : text) {
        if (c == '\x01') inside = true;
        if (c == '\x02') inside = false;
        if (divides_words(c) && !inside) {
          end_word();
          if (value.values[i].line > 0) word.line = value.values[i].line;
          continue;
        }
        word.text += c;
        begun = true;
      }
    }
  }
  end_word();
  if (!split && out.empty()) out.push_back({"", line});
  return out;
}

std::string ShellVariables::word(const std::vector<WordPart>& parts, std::int64_t line) {
  const std::vector<ShellWord> all = words(parts, line, false);
  return all.empty() ? "" : all.front().text;
}

std::optional<std::int64_t> ShellVariables::number(const std::string& expression,
                                                   std::int64_t line) {
  if (++depth_ > deepest_values) {
    --depth_;
    return std::nullopt;
  }
  const std::string text = word(shell_parts(expression, true, file_, line), line);
  std::optional<std::int64_t> value;
  if (!has_mark(text))
    value = shell_arithmetic(text, [&](const std::string& name) -> std::optional<std::int64_t> {
      const auto known_text = known(name);
      if (!known_text || has_mark(*known_text)) return std::nullopt;
      if (known_text->empty()) return 0;
      return known_text == name ? std::nullopt : number(*known_text, line);
    });
  --depth_;
  return value;
}

}  // namespace orrery
