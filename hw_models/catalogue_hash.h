// SPDX-License-Identifier: Apache-2.0
// Knows which files an answer can depend on, and one number that tells whether any has changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace orrery {

// A file of the catalogues as it was when its content was hashed.
struct CatalogueFile {
  std::string path;  // from the root of the data: "hw_models/catalog/nics/cx7.json"
  std::uintmax_t size = 0;
  std::int64_t changed = 0;  // when it last changed, in ns of its file system's clock
  std::uint64_t content = 0;
  bool operator==(const CatalogueFile&) const = default;
};
using CatalogueManifest = std::vector<CatalogueFile>;  // sorted by path

// The catalogues of machines, wirings, models, stacks and clusters, the calibrations and the
// models' errors below `root`, each read and hashed but for those that `known` holds with the same
// size and time.
CatalogueManifest catalogue_manifest(const std::filesystem::path& root,
                                     const CatalogueManifest& known = {});
// The hash of all paths and contents: 16 hexadecimal digits.
std::string catalogue_hash(const CatalogueManifest& manifest);

// That of data_root(). A build leaves a manifest beside the program and an installation beside the
// catalogues, so that only what was edited since is read: about a millisecond, else ten
// (bench_parts: hash_of_catalogues).
std::string catalogue_hash();

// A manifest as a file, one line for each file of the catalogues. Reading a file that is missing or
// no manifest gives an empty one: everything is hashed then.
std::string manifest_text(const CatalogueManifest& manifest);
CatalogueManifest read_manifest(const std::filesystem::path& file);

}  // namespace orrery
