// SPDX-License-Identifier: Apache-2.0
// Reads mixes of jobs from JSON files, and writes them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/json/json.h"
#include "workloads/cluster_job/job_mix.h"

namespace orrery {

// Either parts (what a fit writes) or a summary, and perhaps when jobs come and limits:
// workloads/catalog/job_mixes/README.md tells every key. Error, with the place: unknown keys, with
// the nearest; values out of range; a summary that no mix has.
JobMix read_job_mix(const JsonValue& at, const std::string& name);

// As a file has it, a line for each part: read_job_mix() makes the same mix of it, but for its
// notes. `source`: an id of hw_models/catalog/sources.
std::string job_mix_text(const JobMix& mix, const std::string& source);

// An entry of the catalogue of mixes: a file beside its index.
struct JobMixEntry {
  std::string name, title, file, source;
};
// Of CATALOG_FOLDER/job_mixes/index.json.
std::vector<JobMixEntry> job_mix_entries(const std::filesystem::path& catalog_folder);
// By the name of an entry, a path, or a mix that stands inline (JsonValue::reference), which its
// title names. Error: none of them, with the nearest name.
JobMix load_job_mix(const std::string& name_or_path, const std::filesystem::path& catalog_folder);

}  // namespace orrery
