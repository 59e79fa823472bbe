// SPDX-License-Identifier: Apache-2.0
// Reads configurations of programs as settings of questions.
#include "sim/question/settings/given_file.h"

#include <fmt/format.h>

#include "sim/launch/configurations/configuration.h"
#include "sim/launch/configurations/one_step.h"

namespace orrery {

std::optional<SortedJson> settings_of_configuration(const std::string& file,
                                                    const SortedJson& asked, GivenFor kind) {
  auto run = read_configuration(file, asked);
  if (!run) return std::nullopt;
  const bool serving = kind == GivenFor::serving;
  if (kind == GivenFor::step && run->serves)
    run = one_step_of(*run, asked);
  else if (run->serves != serving)
    throw Error({.file = file,
                 .found = fmt::format("a configuration of {}", run->program),
                 .expected = serving ? "a serving engine's command line, or settings of serve"
                                     : "a configuration that trains: orrery serve reads this one"});
  SortedJson settings = run->settings;
  settings[read_from_key] = to_json(*run);
  return settings;
}

std::optional<GivenRun> given_run_in(const JsonValue& settings) {
  const auto at = settings.find(read_from_key);
  if (!at) return std::nullopt;
  return given_run_of(*at);
}

}  // namespace orrery
