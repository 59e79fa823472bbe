// SPDX-License-Identifier: Apache-2.0
// Finds the file that a name of a catalogue's list, or a path, stands for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/errors/check.h"

namespace orrery {

// Entries have a `name` and a `file` in the folder. What is no entry is a path of its own. Error,
// `unknown` with what was found and the nearest name: no such file either.
template <class Entry>
std::filesystem::path entry_file(const std::vector<Entry>& entries,
                                 const std::filesystem::path& folder,
                                 const std::string& name_or_path, ErrorInfo unknown) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    if (entry.name == name_or_path) return folder / entry.file;
    names.push_back(entry.name);
  }
  std::error_code ignored;
  if (std::filesystem::exists(name_or_path, ignored)) return name_or_path;
  unknown.found = in_quotes(name_or_path);
  unknown.nearest = nearest_name(name_or_path, names);
  throw Error(unknown);
}

}  // namespace orrery
