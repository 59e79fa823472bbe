// SPDX-License-Identifier: Apache-2.0
// Knows how the text of a shell script falls into words and signs; nothing is run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Part of a word. Of a variable `text` is what stands between the braces, of arithmetic the
// expression, of a command what would be run for its output.
struct WordPart {
  enum class Kind : std::uint8_t { literal, variable, arithmetic, command };
  Kind kind = Kind::literal;
  std::string text;
  bool quoted = false;
};

struct ShellToken {
  // A sign is ";", "&&", "|", "(", "<<", ... or "\n"; "((" has the expression as its text, "<<"
  // the lines of the document, and `quoted` where nothing in them is expanded.
  enum class Kind : std::uint8_t { word, sign };
  Kind kind = Kind::word;
  std::int64_t line = 1;
  std::string sign;
  std::string text = {};
  std::vector<WordPart> parts = {};
  bool quoted = false;
  // The word without quotes or variables; empty where it has some.
  std::string plain() const;
  bool is(std::string_view wanted) const { return kind == Kind::sign && sign == wanted; }
};

// Of names of variables.
bool is_name_sign(char c);

// Error: quotes, brackets or documents that do not end, deeper than scripts nest them.
std::vector<ShellToken> shell_tokens(std::string_view text, const std::string& file,
                                     std::int64_t first_line = 1);
// The parts of text as between double quotes, or of a bare word.
std::vector<WordPart> shell_parts(std::string_view text, bool quoted, const std::string& file,
                                  std::int64_t line);

}  // namespace orrery
