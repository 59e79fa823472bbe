// SPDX-License-Identifier: Apache-2.0
// Writes how an answer is had again.
#include "sim/app/page/repeat.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text/shell.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

// Words of these commands that are no flags, by the key that holds them.
constexpr const char* word_keys[] = {"name", "arguments", "action"};
constexpr std::size_t most_of_a_line = 1500;

// Commands that are asked by words and flags, not by settings.
bool by_line(const std::string& command) {
  return command == "topology" || command == "validate" || command == "catalog" ||
         command == "calibrate";
}

bool is_word(const std::string& command, const std::string& key) {
  return by_line(command) &&
         std::find(std::begin(word_keys), std::end(word_keys), key) != std::end(word_keys);
}

// A list of plain values is a list with commas, as flags have it.
std::string value_text(const SortedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  const bool plain_list =
      value.is_array() &&
      std::none_of(value.begin(), value.end(), [](const auto& v) { return v.is_structured(); });
  if (!plain_list) return value.dump();
  std::string text;
  for (const SortedJson& one : value)
    text += (text.empty() ? "" : ",") + (one.is_string() ? one.get<std::string>() : one.dump());
  return text;
}

}  // namespace

std::string command_line(const std::string& command, const JsonValue& question) {
  std::string words, flags;
  for (const auto& [key, value] : question.raw().items()) {
    if (value.is_null() || (command == "validate" && key == "files")) continue;
    if (is_word(command, key)) {
      words += " " + shell_word(value_text(value));
      continue;
    }
    flags += " " + flag_of(key);
    // Of settings, true and false are values; a line's flag without one is there or not.
    if (!by_line(command) || value != true) flags += " " + shell_word(value_text(value));
  }
  return "orrery " + command + words + flags;
}

Document repeat_document(const JsonValue& answer) {
  const JsonValue head = answer.at("orrery"), question = answer.at("question");
  const std::string command = head.at("command").text();
  const auto seed = head.find("seed");
  Document document(true);
  document.paragraph(fmt::format("Orrery {}, catalogue {}{}.", head.at("version").text(),
                                 head.at("catalogue").text(),
                                 seed ? fmt::format(", seed {}", seed->integer()) : ""));
  document.paragraph(
      "The same version and catalogue give the same bytes again: `orrery rerun answer.json` on the "
      "answer that --json prints.");
  const std::string line = command_line(command, question);
  if (line.size() <= most_of_a_line) document.code(line, "sh");
  document.label("The question");
  const std::string text = question.raw().dump(2);
  document.code(text.size() <= 20 * most_of_a_line
                    ? text
                    : "It holds files: the answer of --json has it whole.",
                "json");
  return document;
}

}  // namespace orrery
