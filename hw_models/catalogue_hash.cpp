// SPDX-License-Identifier: Apache-2.0
// Finds the files of the catalogues, and reads no more of them than it must.
#include "hw_models/catalogue_hash.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "hw_models/catalog.h"
#include "sim/base/content_hash.h"
#include "sim/base/errors/check.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_name = "catalogue.manifest";

constexpr const char* folders[] = {"hw_models/catalog",  "hw_models/calibration",
                                   "sim/engine/catalog", "sim/diagnose/catalog",
                                   "topologies/catalog", "workloads/catalog"};
constexpr const char* single_files[] = {"validation/model_error.json", "validation/rl_error.json",
                                        "validation/served_error.json"};

// A file's size and time; its content is not hashed yet.
CatalogueFile described(const fs::path& root, std::string path) {
  struct stat status {};
  const fs::path file = root / path;
  if (stat(file.c_str(), &status) != 0)
    throw Error({.file = file.string(),
                 .found = "a file that went away while the catalogues were read",
                 .expected = "catalogues at rest"});
  return {.path = std::move(path),
          .size = static_cast<std::uintmax_t>(status.st_size),
          .changed = std::int64_t{1'000'000'000} * status.st_mtim.tv_sec + status.st_mtim.tv_nsec};
}

std::vector<std::string> paths_below(const fs::path& root) {
  std::vector<std::string> paths;
  const std::size_t cut = (root / "").native().size();
  for (const char* folder : folders) {
    std::error_code error;
    for (fs::recursive_directory_iterator item(root / folder, error), end; item != end;
         item.increment(error))
      if (item->path().extension() == ".json") paths.push_back(item->path().string().substr(cut));
  }
  std::error_code ignored;
  for (const char* path : single_files)
    if (fs::exists(root / path, ignored)) paths.emplace_back(path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw Error({.file = file.string(),
                 .found = "a file that cannot be read",
                 .expected = "a readable file of the catalogues"});
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

CatalogueManifest catalogue_manifest(const fs::path& root, const CatalogueManifest& known) {
  CatalogueManifest manifest;
  auto next = known.begin();
  for (std::string& path : paths_below(root)) {
    CatalogueFile file = described(root, std::move(path));
    while (next != known.end() && next->path < file.path) ++next;
    const bool as_known = next != known.end() && next->path == file.path &&
                          next->size == file.size && next->changed == file.changed;
    file.content = as_known ? next->content : content_hash(text_of(root / file.path));
    manifest.push_back(std::move(file));
  }
  return manifest;
}

std::string catalogue_hash(const CatalogueManifest& manifest) {
  std::uint64_t hash = manifest.size();
  for (const CatalogueFile& file : manifest)
    hash = joined_hash(joined_hash(hash, content_hash(file.path)), file.content);
  return hash_text(hash);
}

std::string catalogue_hash() {
  const fs::path root = data_root();
  CatalogueManifest known = read_manifest(root / manifest_name);
  if (known.empty()) {
    std::error_code ignored;
    known =
        read_manifest(fs::read_symlink("/proc/self/exe", ignored).parent_path() / manifest_name);
  }
  return catalogue_hash(catalogue_manifest(root, known));
}

std::string manifest_text(const CatalogueManifest& manifest) {
  std::string text;
  for (const CatalogueFile& file : manifest)
    text += fmt::format("{} {} {} {}\n", file.content, file.size, file.changed, file.path);
  return text;
}

CatalogueManifest read_manifest(const fs::path& file) {
  std::ifstream stream(file);
  CatalogueManifest manifest;
  CatalogueFile line;
  while (stream >> line.content >> line.size >> line.changed && stream.get() == ' ' &&
         std::getline(stream, line.path))
    manifest.push_back(line);
  if (!std::is_sorted(manifest.begin(), manifest.end(),
                      [](const auto& a, const auto& b) { return a.path < b.path; }))
    return {};
  return manifest;
}

}  // namespace orrery
