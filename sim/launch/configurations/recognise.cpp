// SPDX-License-Identifier: Apache-2.0
// Tells programs by the names of their settings.
#include <algorithm>

#include "sim/launch/configurations/commands.h"

namespace orrery {
namespace {

// A setting as a program spells it: the signs of some have dashes, of others underscores.
bool is_sign(std::string name, const std::string& sign) {
  if (name.starts_with("--")) name.erase(0, 2);
  const bool dashes = sign.find('-') != std::string::npos;
  std::replace(name.begin(), name.end(), dashes ? '_' : '-', dashes ? '-' : '_');
  return fits_pattern(name, sign);
}

// The number behind `word`, its first three parts ("0.5.9" of "0.5.9.post1"); empty: none.
std::string number_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return "";
  std::string number;
  int dots = 0;
  for (std::size_t end = at + word.size(); end < text.size(); ++end) {
    const char c = text[end];
    if (c == '.' && ++dots == 3) break;
    if (c != '.' && (c < '0' || c > '9')) break;
    number += c;
  }
  if (dots > 1 && number.ends_with('.')) number.pop_back();
  const bool whole = dots >= 1 && !number.ends_with('.') && !number.starts_with('.');
  return whole && number.size() <= 10 ? number : "";
}

}  // namespace

std::optional<Recognised> program_of(const std::vector<Said>& said) {
  std::optional<Recognised> best;
  for (const ProgramSigns& signs : program_signs()) {
    int score = 0;
    for (const Said& one : said)
      for (const std::string& sign : signs.settings) score += is_sign(one.name, sign) ? 1 : 0;
    if (score > (best ? best->score : 0)) best = {signs.program, score};
  }
  return best;
}

std::string named_release(const ShellScript& script, GivenProgram program) {
  std::string found;
  const auto look = [&](const std::string& text) {
    for (const ProgramSigns& signs : program_signs())
      if (signs.program == program)
        for (const std::string& word : signs.release_words)
          if (const std::string number = number_behind(text, word); !number.empty()) found = number;
  };
  for (const ShellCommand& command : script.commands)
    for (const ShellWord& word : command.words) look(word.text);
  for (const auto& [name, value] : script.variables) look(value.text);
  return found;
}

}  // namespace orrery
