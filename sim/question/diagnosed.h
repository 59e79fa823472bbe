// SPDX-License-Identifier: Apache-2.0
// Answers what is wrong with a run: its settings as they are predicted, and the files that it left.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diagnose/diagnose.h"
#include "sim/question/ask.h"
#include "sim/question/run_files.h"

namespace orrery {

// A step time as people write it ("21.3s", "850 ms"), which wins over a log's, and files of any
// kind that sim/observe reads, one log at most, or folders of them.
struct DiagnoseFiles {
  std::string step;  // "": not given
  std::vector<RunFile> files;
};

struct Diagnosed {
  Simulated simulated;  // of the run without a fault; refused where it cannot exist
  std::optional<Diagnosis> diagnosis;
  std::vector<std::string> kinds;  // of the files, in their order
};

// Errors: nothing observed, two logs, collectives of tests alone, a step that is no time.
Diagnosed diagnose_settings(const JsonValue& settings, const DiagnoseFiles& files,
                            const AskedWith& with);
// The files alone.
Observations read_observations(const DiagnoseFiles& files, std::vector<std::string>& kinds);

}  // namespace orrery
