// SPDX-License-Identifier: Apache-2.0
// Knows where models come from: the catalogue's folder, a file of its shape, a Hugging Face config.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workloads/model/model.h"

namespace orrery {

// A model by its catalogue name or an alias of it ("Qwen/Qwen3-235B-A22B", in any case); or by the
// path of a file, of a folder with a config.json, or "-" for standard input: one of the catalogue's
// shape, or a Hugging Face config.json, which has a "model_type". Error naming the nearest model
// otherwise.
Model load_model(const std::string& name, const std::filesystem::path& catalog_folder);

// The catalogue entry as it stands in its file, with "based_on" filled in.
JsonValue load_model_entry(const std::string& name, const std::filesystem::path& catalog_folder);

// Names of the catalogue, sorted.
std::vector<std::string> model_names(const std::filesystem::path& catalog_folder);

}  // namespace orrery
