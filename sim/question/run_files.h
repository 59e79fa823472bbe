// SPDX-License-Identifier: Apache-2.0
// Knows the files of a run as a user names them: each kind by its flag, any kind by its place.
#pragma once

#include <string>
#include <vector>

#include "sim/diagnose/observed/observations.h"
#include "sim/observe/observed.h"

namespace orrery {

// One file, or a folder of files, of a run. A flag takes files of its own kind alone.
struct RunFile {
  std::string name;
  std::string flag = {};  // "--profile"; empty: it was named by its place, and may be of any kind
};
// The flags that name files of a run, each with the kind that it takes.
struct RunFlag {
  const char* flag;
  observe::ObservedKind kind;
};
const std::vector<RunFlag>& run_flags();

// Reads them. `kinds`: of the files, in their order. Errors: two logs, a rank twice, a file of
// another kind than its flag takes, a folder without any.
Observations read_run_files(const std::vector<RunFile>& files, std::vector<std::string>& kinds);

// Whether the file says what ran and is none that a run leaves: settings of ours, or what a program
// was started with. Its content tells. Error: it is neither.
bool is_configuration(const std::string& file);

}  // namespace orrery
