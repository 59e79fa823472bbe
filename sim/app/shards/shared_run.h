// SPDX-License-Identifier: Apache-2.0
// Knows what a folder of results is of: the question that processes share, whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "sim/base/json/json.h"
#include "sim/base/text/enum_names.h"

namespace orrery {

// Whether results make one answer, or are answers each: of lines, as JSON or as rows.
enum class ResultForm : std::uint8_t { answer, lines, rows };
inline constexpr auto result_form_text = enum_names<ResultForm>({"answer", "lines", "rows"});

// What processes on several machines must agree on. It stands in the folder, as run.json, so that
// `orrery merge` needs nothing else; lines stand beside it.
struct SharedRun {
  std::string command;  // "plan"
  std::string name;     // of the user's file, for messages: "question.json"; may be empty
  ResultForm form = ResultForm::answer;
  std::optional<std::uint64_t> seed = {};
  SortedJson question;  // files inline; of lines: {"flags": what flags say, "lines": their hash}
  std::string catalogue = {};  // its hash, of a run that a folder holds: looked up once

  JsonValue settings() const { return JsonValue::from(question, name); }
  std::string hash() const;  // of all that an answer depends on but version and catalogue
};

// Where the folder keeps it, and the lines.
std::filesystem::path run_file(const std::filesystem::path& folder);
std::filesystem::path lines_file(const std::filesystem::path& folder);

// A hash of a file's bytes, read piece by piece. Error where it cannot be read.
std::uint64_t file_hash(const std::filesystem::path& file);

// Makes the folder and puts the run into it; where one is there already it must be the same, of the
// same version and catalogue: else an Error. Returns it as the folder holds it. `lines`: the user's
// file, which is copied; or empty.
SharedRun begin_run(const std::filesystem::path& folder, const SharedRun& run,
                    const std::string& lines);

// Error where the folder has no run, or one of another version or catalogue.
SharedRun load_run(const std::filesystem::path& folder);

}  // namespace orrery
