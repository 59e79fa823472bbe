// SPDX-License-Identifier: Apache-2.0
// Reads the text of configurations.
#include "sim/launch/source/given_text.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"
#include "sim/launch/source/said.h"

namespace orrery {
namespace {

// The longest public launch script or configuration that was read has some 100 KB.
constexpr std::size_t longest = std::size_t{4} << 20U;

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80                   ? 0
                             : lead >= 0xc2 && lead < 0xe0 ? 1
                             : lead >= 0xe0 && lead < 0xf0 ? 2
                             : lead >= 0xf0 && lead < 0xf5 ? 3
                                                           : 9;
    if (more == 9 || i + more >= text.size() + (more == 0 ? 1 : 0)) return false;
    for (std::size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0U) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace

std::string Said::place() const { return line > 0 ? fmt::format("{}:{}", file, line) : file; }

void check_given_text(const std::string& text, const std::string& file) {
  const auto fail = [&](const std::string& found) {
    throw Error({.file = file, .found = found, .expected = "the text of a configuration"});
  };
  if (text.find_first_not_of(" \t\r\n\f") == std::string::npos) fail("an empty file");
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || code == 0x7f;
  });
  if (control != text.end())
    fail(
        fmt::format("a control character in line {}", std::count(text.begin(), control, '\n') + 1));
  if (!is_utf8(text)) fail("bytes that are no UTF-8");
}

std::string given_text(const std::filesystem::path& file) {
  check_file_allowed(file);
  const auto fail = [&](const std::string& found) {
    throw Error({.file = file.string(), .found = found, .expected = "a configuration"});
  };
  std::error_code status;
  if (std::filesystem::is_directory(file, status)) fail("a directory");
  if (!std::filesystem::exists(file, status)) fail("no such file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail("a file that cannot be read");
  std::string text(longest + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > longest) fail(fmt::format("more than {} MiB", longest >> 20U));
  check_given_text(text, file.string());
  return text;
}

}  // namespace orrery
