// SPDX-License-Identifier: Apache-2.0
// Holds files that questions name against the one folder that they may be in.
#include "sim/base/errors/file_guard.h"

#include <algorithm>
#include <atomic>

#include "sim/base/errors/check.h"

namespace orrery {
namespace {

// Set once, before questions come; never destroyed, since threads may still ask at the end.
std::atomic<const std::filesystem::path*> only_below{nullptr};

}  // namespace

void allow_files_only_below(const std::filesystem::path& folder) {
  static const std::filesystem::path& kept =
      *new std::filesystem::path(std::filesystem::weakly_canonical(folder));
  only_below.store(&kept);
}

void check_file_allowed(const std::filesystem::path& file) {
  const std::filesystem::path* folder = only_below.load(std::memory_order_relaxed);
  if (folder == nullptr) return;
  std::error_code ignored;
  const std::filesystem::path place = std::filesystem::weakly_canonical(file, ignored);
  const auto [left, unused] =
      std::mismatch(folder->begin(), folder->end(), place.begin(), place.end());
  if (left == folder->end()) return;
  throw Error(
      {.file = file.string(),
       .found = "a file by its name",
       .expected = "a name of the catalogue, or the entry itself: files are not read here"});
}

}  // namespace orrery
