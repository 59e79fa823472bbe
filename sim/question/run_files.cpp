// SPDX-License-Identifier: Apache-2.0
// Reads the files of a run, and tells configurations among them.
#include "sim/question/run_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/json/json.h"
#include "sim/launch/configurations/configuration.h"
#include "sim/observe/input/byte_stream.h"
#include "sim/question/settings/settings.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using observe::ObservedKind;

// As a sentence says them, in the order of ObservedKind.
constexpr std::array<const char*, 4> kind_words = {"a log", "a profile", "times of nccl-tests",
                                                   "counters"};
const char* words_of(ObservedKind kind) { return kind_words[static_cast<std::size_t>(kind)]; }

const RunFlag* flag_of_kind(ObservedKind kind) {
  for (const RunFlag& one : run_flags())
    if (one.kind == kind) return &one;
  return nullptr;
}

ObservedKind kind_of_flag(const std::string& flag) {
  for (const RunFlag& one : run_flags())
    if (one.flag == flag) return one.kind;
  return ObservedKind::log;
}

void check_kind(const RunFile& file, ObservedKind found) {
  if (file.flag.empty() || kind_of_flag(file.flag) == found) return;
  const RunFlag* own = flag_of_kind(found);
  throw Error(
      {.file = file.name,
       .found = words_of(found),
       .expected = fmt::format(
           "{} at {}: {}the file's name without a flag takes it", words_of(kind_of_flag(file.flag)),
           file.flag, own != nullptr ? fmt::format("{}, or ", own->flag) : std::string())});
}

void take_log(Observations& run, observe::RunLog&& log) {
  if (run.log)
    throw Error({.file = log.file,
                 .found = "a second log",
                 .expected = "one log of a run: " + run.log->file + " was read before"});
  run.log = std::move(log);
}

void take_profile(Observations& run, observe::Profile&& profile) {
  for (const observe::Profile& known : run.profiles)
    if (known.rank.rank && profile.rank.rank && *known.rank.rank == *profile.rank.rank)
      throw Error({.file = profile.file,
                   .found = "rank " + std::to_string(*profile.rank.rank) + " again",
                   .expected = "one profile of a rank: " + known.file + " was read before"});
  run.profiles.push_back(std::move(profile));
}

void take(Observations& run, observe::Observed&& observed) {
  if (auto* log = std::get_if<observe::RunLog>(&observed)) return take_log(run, std::move(*log));
  if (auto* profile = std::get_if<observe::Profile>(&observed))
    return take_profile(run, std::move(*profile));
  if (auto* counters = std::get_if<observe::CounterLog>(&observed))
    return run.counters.push_back(std::move(*counters));
  run.tests.push_back(std::move(std::get<observe::CollectiveTests>(observed)));
}

void take_file(Observations& run, const RunFile& file, std::vector<std::string>& kinds) {
  // What begins like none of the other kinds is read as a log: a flag that takes no log says so
  // before the log's reader finds no step.
  if (!file.flag.empty() && kind_of_flag(file.flag) != ObservedKind::log &&
      !observe::kind_by_head(file.name) && !observe::tells_any_step(file.name))
    throw Error(
        {.file = file.name,
         .found = "none of the files that a run leaves",
         .expected = fmt::format("{} at {}", words_of(kind_of_flag(file.flag)), file.flag)});
  observe::Observed observed = observe::read_observed(file.name);
  check_kind(file, observe::kind_of(observed));
  kinds.emplace_back(observe::observed_text[observe::kind_of(observed)]);
  take(run, std::move(observed));
}

// Of a folder each file that can be read; a note names the others.
void take_folder(Observations& run, const RunFile& folder, std::vector<std::string>& kinds) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.name))
    // Beside runs that were made with a fault, what they were made of.
    if (entry.is_regular_file() && entry.path().filename() != "run.json")
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  const std::size_t before = kinds.size();
  for (const std::string& name : names) {
    try {
      take_file(run, {name, folder.flag}, kinds);
    } catch (const Error& error) {
      run.notes.push_back("Left out: " + error.message() + ".");
    }
  }
  if (kinds.size() == before)
    throw Error({.file = folder.name,
                 .found = "no file that a run leaves",
                 .expected = "a folder with a log, profiles or counters"});
}

// Whether it is small enough to be written by people, and what stands in it if it is.
std::optional<std::string> small_text(const std::string& file) {
  constexpr std::uintmax_t most = std::uintmax_t{1} << 22U;
  std::error_code status;
  const std::uintmax_t size = fs::file_size(file, status);
  if (status || size > most) return std::nullopt;
  return observe::first_bytes(file, most);
}

// Whether JSON is what a program is started with, or has a key of our settings at least: one that
// is misspelt is named when they are read, and so is what is broken in them.
bool is_settings(const std::string& file) {
  try {
    if (read_configuration(file, SortedJson::object())) return true;
    const JsonValue document = JsonValue::load(file);
    if (!document.is_object()) return false;
    const std::vector<Setting>& known = settings();
    return std::any_of(known.begin(), known.end(),
                       [&](const Setting& one) { return document.find(one.key).has_value(); });
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

const std::vector<RunFlag>& run_flags() {
  static const std::vector<RunFlag> flags = {{"--log", ObservedKind::log},
                                             {"--profile", ObservedKind::profile},
                                             {"--dcgm", ObservedKind::counters}};
  return flags;
}

Observations read_run_files(const std::vector<RunFile>& files, std::vector<std::string>& kinds) {
  Observations run;
  for (const RunFile& file : files) {
    std::error_code status;
    if (fs::is_directory(file.name, status))
      take_folder(run, file, kinds);
    else
      take_file(run, file, kinds);
  }
  std::stable_sort(run.profiles.begin(), run.profiles.end(),
                   [](const observe::Profile& a, const observe::Profile& b) {
                     return a.rank.rank.value_or(0) < b.rank.rank.value_or(0);
                   });
  return run;
}

bool is_configuration(const std::string& file) {
  std::error_code status;
  if (!fs::is_regular_file(file, status)) return false;
  const auto kind = observe::kind_by_head(file);
  if (kind && *kind != ObservedKind::profile) return false;
  const auto text = small_text(file);
  // Traces are JSON, as our settings and DeepSpeed's are.
  if (!text || (kind && text->find("\"traceEvents\"") != std::string::npos)) return false;
  if (kind) return is_settings(file);
  if (observe::tells_any_step(file)) return false;
  try {
    return read_configuration(file, SortedJson::object()).has_value();
  } catch (const Error& error) {
    const ErrorInfo& info = error.info();
    throw Error({.file = file,
                 .found = fmt::format("no step of a log, and no configuration: {}{}",
                                      info.path.empty() ? "" : info.path + ": ", info.found),
                 .expected = info.expected,
                 .nearest = info.nearest});
  }
}

}  // namespace orrery
