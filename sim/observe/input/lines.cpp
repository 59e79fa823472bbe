// SPDX-License-Identifier: Apache-2.0
// Cuts a stream of bytes into lines.
#include "sim/observe/input/lines.h"

#include <algorithm>

namespace orrery::observe {
namespace {

constexpr std::size_t piece = std::size_t{1} << 18U, longest_line = std::size_t{1} << 20U;

// Takes out "ESC [ ... letter" and NUL bytes, in place.
void strip_codes(std::string& line) {
  if (line.find_first_of(std::string_view("\x1b\0", 2)) == std::string::npos) return;
  std::size_t to = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\0') continue;
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
      continue;
    }
    line[to++] = line[i];
  }
  line.resize(to);
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& file) : stream_(file) {}

bool LineReader::fill() {
  buffer_.resize(piece);
  buffer_.resize(stream_.read(buffer_.data(), piece));
  at_ = 0;
  return !buffer_.empty();
}

bool LineReader::next(std::string_view& line) {
  line_.clear();
  number_ = next_number_;
  bool any = false;
  for (;;) {
    if (at_ >= buffer_.size() && !fill()) {
      if (!any) return false;
      break;
    }
    any = true;
    const std::size_t end = std::min(buffer_.find_first_of("\r\n", at_), buffer_.size());
    const std::size_t room = longest_line - std::min(longest_line, line_.size());
    line_.append(buffer_, at_, std::min(end - at_, room));
    at_ = end;
    if (end < buffer_.size()) {
      if (buffer_[at_++] == '\n') ++next_number_;
      break;
    }
  }
  strip_codes(line_);
  line = line_;
  return true;
}

}  // namespace orrery::observe
