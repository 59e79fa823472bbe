// SPDX-License-Identifier: Apache-2.0
// Knows how an error reads: one line, with the nearest valid name where a name was wrong.
#include "sim/base/errors/check.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "sim/base/errors/spelling.h"

namespace orrery {
namespace {

// Users' text may hold line breaks and control characters; a message is one line.
std::string one_line(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += "\\x";
      line += digits[byte >> 4U];
      line += digits[byte & 15U];
    } else {
      line += c;
    }
  }
  return line;
}

std::string compose(const ErrorInfo& info) {
  std::string place = info.file;
  if (!info.path.empty()) place += (place.empty() ? "" : ": ") + info.path;
  std::string text;
  const auto append = [&text](const std::string& part) {
    text += (text.empty() ? "" : "; ") + part;
  };
  if (!info.found.empty()) append("found " + info.found);
  if (!info.expected.empty()) append("expected " + info.expected);
  if (!info.nearest.empty()) append("did you mean \"" + info.nearest + "\"?");
  if (!place.empty() && !text.empty()) place += ": ";
  return one_line(place + text);
}

}  // namespace

Error::Error(ErrorInfo info) : info_(std::move(info)), message_(compose(info_)) {}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t shown = 60;
  std::size_t end = std::min(text.size(), shown);
  // A cut in the middle of a UTF-8 character would make the message invalid.
  if (end < text.size())
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  std::string quoted = "\"";
  quoted += text.substr(0, end);
  return quoted + (end < text.size() ? "...\"" : "\"");
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : names) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t allowed = std::max<std::size_t>(2, longer / 3);
    if (longer - std::min(name.size(), candidate.size()) > allowed) continue;
    const std::size_t distance = edit_distance(name, candidate);
    // A name of which no letter is left is not near, however short it is.
    if (distance > allowed || distance >= longer || distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: %s\n", file, line, condition, message.c_str());
  std::abort();
}

}  // namespace orrery
