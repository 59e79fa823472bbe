// SPDX-License-Identifier: Apache-2.0
// Keeps in a folder of results what they are of.
#include "sim/app/shards/shared_run.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "sim/app/answer/version.h"
#include "sim/base/content_hash.h"
#include "sim/base/output_file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

Json run_json(const SharedRun& run) {
  return {{"orrery",
           {{"version", program_version()},
            {"catalogue", catalogue_version()},
            {"command", run.command},
            {"seed", run.seed ? Json(*run.seed) : Json(nullptr)}}},
          {"name", run.name},
          {"form", result_form_text[run.form]},
          {"question", run.question}};
}

// Error where another program or catalogue has begun the folder.
void check_same_program(const JsonValue& head) {
  const auto same = [&](const char* key, const std::string& now) {
    const JsonValue was = head.at(key);
    if (was.text() != now)
      was.fail(
          fmt::format("{} {}, which runs here; results of two are not mixed: take another "
                      "folder",
                      key, now));
  };
  same("version", program_version());
  same("catalogue", catalogue_version());
}

SharedRun read_run(const JsonValue& file) {
  file.expect_only({"orrery", "name", "form", "question"});
  const JsonValue head = file.at("orrery");
  check_same_program(head);
  SharedRun run{.command = head.at("command").text(),
                .name = file.at("name").text(),
                .form = result_form_text.from(file.at("form")),
                .question = file.at("question").raw(),
                .catalogue = head.at("catalogue").text()};
  if (const auto seed = head.find("seed"))
    run.seed = static_cast<std::uint64_t>(seed->integer(0, INT64_MAX));
  return run;
}

}  // namespace

std::string SharedRun::hash() const {
  const SortedJson all = SortedJson::array({SortedJson(command), SortedJson(result_form_text[form]),
                                            seed ? SortedJson(*seed) : SortedJson(), question});
  return hash_text(content_hash(all.dump()));
}

fs::path run_file(const fs::path& folder) { return folder / "run.json"; }
fs::path lines_file(const fs::path& folder) { return folder / "lines.jsonl"; }

std::uint64_t file_hash(const fs::path& file) {
  constexpr std::size_t piece = std::size_t{1} << 20U;
  std::ifstream in(file, std::ios::binary);
  std::string text(piece, '\0');
  std::uint64_t hash = 0;
  errno = 0;
  while (in.read(text.data(), static_cast<std::streamsize>(piece)) || in.gcount() > 0)
    hash = joined_hash(hash, content_hash(std::string_view(text).substr(
                                 0, static_cast<std::size_t>(in.gcount()))));
  if (!in.eof())
    throw Error({.file = file.string(),
                 .found = errno != 0 ? std::strerror(errno) : "a file that cannot be read",
                 .expected = "lines of JSON"});
  return hash;
}

SharedRun begin_run(const fs::path& folder, const SharedRun& run, const std::string& lines) {
  make_folder(folder);
  std::error_code status;
  if (!fs::exists(run_file(folder), status)) {
    if (!lines.empty()) copy_new_file(lines, lines_file(folder));
    write_new_file(run_file(folder), run_json(run).dump(2) + "\n");
  }
  // Also what another process wrote meanwhile.
  SharedRun known = load_run(folder);
  if (known.hash() == run.hash()) return known;
  throw Error({.file = run_file(folder).string(),
               .path = "question",
               .found = fmt::format("another question of {}{}{}", known.command,
                                    known.name.empty() ? "" : ", ", known.name),
               .expected = "the question that is asked here, or a folder of its own for it"});
}

SharedRun load_run(const fs::path& folder) {
  std::error_code status;
  if (!fs::is_directory(folder, status))
    throw Error({.file = folder.string(),
                 .found = fs::exists(folder, status) ? "a file" : "nothing",
                 .expected = "a folder that --results has filled"});
  if (!fs::exists(run_file(folder), status))
    throw Error({.file = folder.string(),
                 .found = "no run.json",
                 .expected = "a folder that --results has filled"});
  return read_run(JsonValue::load(run_file(folder)));
}

}  // namespace orrery
