// SPDX-License-Identifier: Apache-2.0
// Reads what a run left, predicts it, and holds one against the other.
#include "sim/question/diagnosed.h"

#include <algorithm>
#include <filesystem>

#include "sim/base/json/json.h"
#include "sim/base/text/words.h"
#include "sim/observe/observed.h"

namespace orrery {
namespace {

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

void take(Observations& run, observe::Observed&& observed, const std::string& file) {
  if (auto* log = std::get_if<observe::RunLog>(&observed)) return take_log(run, std::move(*log));
  if (auto* profile = std::get_if<observe::Profile>(&observed))
    return take_profile(run, std::move(*profile));
  if (auto* counters = std::get_if<observe::CounterLog>(&observed))
    return run.counters.push_back(std::move(*counters));
  throw Error({.file = file,
               .found = "times of nccl-tests",
               .expected = "what a run left: a log, profiles, counters"});
}

}  // namespace

namespace {

// Of a folder each file that can be read; a note names the others.
void take_folder(Observations& run, const std::string& folder, std::vector<std::string>& kinds) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    // Beside runs that were made with a fault, what they were made of.
    if (entry.is_regular_file() && entry.path().filename() != "run.json")
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  const std::size_t before = kinds.size();
  for (const std::string& name : names) {
    try {
      observe::Observed observed = observe::read_observed(name);
      kinds.emplace_back(observe::observed_text[observe::kind_of(observed)]);
      take(run, std::move(observed), name);
    } catch (const Error& error) {
      run.notes.push_back("Left out: " + error.message() + ".");
    }
  }
  if (kinds.size() == before)
    throw Error({.file = folder,
                 .found = "no file that a run leaves",
                 .expected = "a folder with a log, profiles or counters"});
}

}  // namespace

Observations read_observations(const DiagnoseFiles& files, std::vector<std::string>& kinds) {
  Observations run;
  if (!files.step.empty()) {
    const double step = JsonValue::from(files.step, "--step").si(Seconds::dimension);
    if (!(step > 0))
      throw Error(
          {.file = "--step", .found = files.step, .expected = "a time above 0, \"21.3 s\""});
    run.step_s = step;
  }
  for (const std::string& file : files.files) {
    std::error_code status;
    if (std::filesystem::is_directory(file, status)) {
      take_folder(run, file, kinds);
      continue;
    }
    observe::Observed observed = observe::read_observed(file);
    kinds.emplace_back(observe::observed_text[observe::kind_of(observed)]);
    take(run, std::move(observed), file);
  }
  std::stable_sort(run.profiles.begin(), run.profiles.end(),
                   [](const observe::Profile& a, const observe::Profile& b) {
                     return a.rank.rank.value_or(0) < b.rank.rank.value_or(0);
                   });
  return run;
}

Diagnosed diagnose_settings(const JsonValue& settings, const DiagnoseFiles& files,
                            const AskedWith& with) {
  Diagnosed out;
  const Observations run = read_observations(files, out.kinds);
  if (!run.usual_step())
    throw Error({.file = "diagnose",
                 .found = out.kinds.empty() ? "no time of a step"
                                            : "no time of a step in " + joined(out.kinds, ", "),
                 .expected = "--step, a log, or profiles"});
  out.simulated = simulate_settings(settings, with);
  if (!out.simulated.refused)
    out.diagnosis = diagnose(out.simulated.scenario, out.simulated.prediction, run);
  return out;
}

}  // namespace orrery
