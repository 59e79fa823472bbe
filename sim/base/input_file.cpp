// SPDX-License-Identifier: Apache-2.0
// Reads a whole file.
#include "sim/base/input_file.h"

#include <fstream>
#include <iterator>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"

namespace orrery {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string bounded_content(const std::filesystem::path& file, std::size_t most_bytes,
                            const std::string& expected) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20U;
  check_file_allowed(file);
  const auto unreadable = [&](const std::string& found) {
    throw Error({.file = file.string(), .found = found, .expected = expected});
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) unreadable("a folder");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) unreadable("no readable file");
  std::string text;
  std::vector<char> piece(mebibyte);
  while (stream && text.size() <= most_bytes) {  // in pieces: a device may have no end
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  const std::size_t most = most_bytes / mebibyte;
  if (text.size() > most_bytes)
    unreadable("more than " + (most % 1024 == 0 ? std::to_string(most / 1024) + " GiB"
                                                : std::to_string(most) + " MiB"));
  if (stream.bad()) unreadable("no readable file");
  return text;
}

}  // namespace orrery
