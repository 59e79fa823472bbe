// SPDX-License-Identifier: Apache-2.0
// Marks what only a run would tell.
#include "sim/launch/source/marks.h"

#include <algorithm>

#include <fmt/format.h>

namespace orrery {
namespace {

// Signs that no file that is read may hold (given_text refuses them), around what stands for a
// value; a condition has a sign of its own behind the first.
constexpr char begin_mark = '\x01', end_mark = '\x02', condition_mark = '\x03';

}  // namespace

std::string marked(std::string_view what) {
  return begin_mark + std::string(what.substr(0, 80)) + end_mark;
}

std::string marked_condition(std::string_view text, std::int64_t line) {
  return fmt::format("{}{}{}{}{}", text, begin_mark, condition_mark, line, end_mark);
}

bool has_mark(std::string_view text) { return text.find(begin_mark) != std::string_view::npos; }

std::string marks_of(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find(begin_mark); at < text.size(); at = text.find(begin_mark, at)) {
    const std::size_t end = std::min(text.find(end_mark, at), text.size() - 1);
    out += text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return out;
}

bool is_mark(std::string_view text) {
  return text.size() > 2 && text.front() == begin_mark && text[1] != condition_mark &&
         text.find(end_mark) == text.size() - 1;
}

std::string shown(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == begin_mark && i + 1 < text.size() && text[i + 1] == condition_mark)
      i = std::min(text.find(end_mark, i), text.size());
    else if (text[i] != begin_mark && text[i] != end_mark)
      out += text[i];
  }
  return out;
}

std::string unknown_reason(std::string_view text) {
  const std::size_t begin = text.find(begin_mark);
  if (begin == std::string_view::npos) return "";
  const std::size_t end = std::min(text.find(end_mark, begin), text.size());
  const std::string_view what = text.substr(begin + 1, end - begin - 1);
  if (what.starts_with(condition_mark))
    return fmt::format("it holds only where the condition before line {} does", what.substr(1));
  return fmt::format("it depends on {}", what);
}

}  // namespace orrery
