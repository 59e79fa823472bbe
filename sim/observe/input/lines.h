// SPDX-License-Identifier: Apache-2.0
// Knows the lines of a text file that may be long, packed, coloured or cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/observe/input/byte_stream.h"

namespace orrery::observe {

// Gives the lines of a file one by one, with codes of terminals (colours) taken out. A carriage
// return ends a line as a line feed does, since progress bars use it; both count as one line
// of the file only where a line feed stands. Bytes that no text has (NUL) are left out.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& file);

  // False at the end. The text holds until the next call. Of a line longer than a mebibyte the
  // rest is left out.
  bool next(std::string_view& line);
  std::size_t number() const { return number_; }  // of the line that was given last, from 1
  bool is_cut() const { return stream_.is_cut(); }
  const std::string& file() const { return stream_.name(); }

 private:
  bool fill();

  ByteStream stream_;
  std::string buffer_, line_;
  std::size_t at_ = 0, number_ = 0, next_number_ = 1;
};

}  // namespace orrery::observe
