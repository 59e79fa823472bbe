// SPDX-License-Identifier: Apache-2.0
// Runs a command again by the words and flags that its question holds.
#include "sim/app/rerun_line.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sim/app/commands.h"
#include "sim/base/errors/check.h"
#include "sim/base/errors/machine_failed.h"
#include "sim/base/output_file.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// A folder that is gone at the end; the process works in it, so that files have the names that the
// question gives them.
class WorkingFolder {
 public:
  WorkingFolder() : before_(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "orrery-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw MachineFailed(
          {.file = name, .found = std::strerror(errno), .expected = "a folder for its tables"});
    folder_ = name;
    fs::current_path(folder_);
  }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;
  ~WorkingFolder() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
    fs::remove_all(folder_, ignored);
  }

 private:
  fs::path before_, folder_;
};

// Flags of the question's other keys: text, JSON, or true for one without a value.
Given line_of(const JsonValue& question, const std::vector<std::string>& words_in) {
  Given given;
  for (const auto& [key, value] : question.members()) {
    if (std::find(words_in.begin(), words_in.end(), key) != words_in.end()) continue;
    const bool json = value.is_array() || value.is_object();
    given.flags[flag_of(key)] = value.is_string() ? value.text() : json ? value.raw().dump() : "";
  }
  given.flags["--json"] = "";
  given.flags["--quiet"] = "";
  return given;
}

Given validate_line(const JsonValue& question) {
  Given given = line_of(question, {"files"});
  const auto files = question.find("files");
  if (!files) return given;
  for (const JsonValue& file : files->items()) {
    const std::string name = file.at("name").text();
    if (fs::path(name).filename() != name || fs::exists(name))
      file.at("name").fail("a file name of its own");
    write_file(name, file.at("text").text());
    given.words.push_back(name);
  }
  return given;
}

Given catalog_line(const JsonValue& question) {
  Given given = line_of(question, {"arguments"});
  for (const JsonValue& word : question.at("arguments").items()) given.words.push_back(word.text());
  return given;
}

Given replay_line(const JsonValue& question) {
  Given given = line_of(question, {"files"});
  for (const JsonValue& file : question.at("files").items()) given.words.push_back(file.text());
  return given;
}

// Questions of flags alone.
Given flags_line(const JsonValue& question) { return line_of(question, {}); }

Given calibrate_line(const JsonValue& question) {
  Given given = line_of(question, {"action", "files"});
  given.words.push_back(question.at("action").text());
  if (const auto files = question.find("files"))
    for (const JsonValue& file : files->items()) given.words.push_back(file.text());
  return given;
}

// Commands whose question is a line of flags and words.
struct RepeatedLine {
  std::string_view command;
  Given (*given)(const JsonValue& question);
  bool writes_files = false;  // tables of the question, for the time of the run
};
constexpr RepeatedLine repeated_lines[] = {{"validate", validate_line, true},
                                           {"catalog", catalog_line},
                                           {"calibrate", calibrate_line},
                                           {"replay", replay_line},
                                           {"fill", flags_line}};

}  // namespace

std::vector<std::string> line_commands() {
  std::vector<std::string> names;
  for (const RepeatedLine& line : repeated_lines) names.emplace_back(line.command);
  return names;
}

Printed repeat_line(const std::string& command, const JsonValue& question,
                    std::optional<std::uint64_t> seed, int threads) {
  const auto line = std::find_if(std::begin(repeated_lines), std::end(repeated_lines),
                                 [&](const RepeatedLine& l) { return command == l.command; });
  for (const Command& known : commands()) {
    if (known.name != command || line == std::end(repeated_lines)) continue;
    std::optional<WorkingFolder> folder;
    if (line->writes_files) folder.emplace();
    Given given = line->given(question);
    if (seed) given.flags["--seed"] = fmt::format("{}", *seed);
    if (threads > 0) given.flags["--threads"] = fmt::format("{}", threads);
    return known.answer(given);
  }
  throw Error({.file = question.file(),
               .path = "orrery.command",
               .found = in_quotes(command),
               .expected = "a command that answers a line"});
}

}  // namespace orrery
