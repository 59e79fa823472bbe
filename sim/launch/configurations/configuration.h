// SPDX-License-Identifier: Apache-2.0
// Knows how a file that people start programs with becomes settings of a question.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/launch/read/given_run.h"

namespace orrery {

// The file's settings, and what became of each of its lines; nullopt: it is a file of Orrery's own
// (JSON of no program that is known), or none that can be read twice (a pipe). Files that it names
// (DeepSpeed's, a job's TOML) are read with it. Nothing is run. `asked`: what the question says
// itself; it wins. Errors are one line: text that is broken, values that are none, layouts that
// contradict themselves, and files of no program that is known.
std::optional<GivenRun> read_configuration(const std::filesystem::path& file,
                                           const SortedJson& asked);
// The same of text.
std::optional<GivenRun> read_configuration_text(const std::string& text, const std::string& file,
                                                const SortedJson& asked);

}  // namespace orrery
