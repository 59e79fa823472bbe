// SPDX-License-Identifier: Apache-2.0
// Finds the pages of the documentation and splits them into prose and blocks.
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/app/run_binary.h"

namespace orrery::test {

inline const std::filesystem::path& source_folder() {
  static const std::filesystem::path folder = ORRERY_SOURCE_DIR;
  return folder;
}

// Every markdown file of the repository, in order of its path.
inline std::vector<std::filesystem::path> pages() {
  namespace fs = std::filesystem;
  std::vector<fs::path> found;
  for (auto at = fs::recursive_directory_iterator(source_folder());
       at != fs::recursive_directory_iterator(); ++at) {
    const std::string name = at->path().filename().string();
    if (at->is_directory() && (name.starts_with(".") || name.starts_with("build")))
      at.disable_recursion_pending();
    else if (at->path().extension() == ".md")
      found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The pages of docs/, and those at the top that belong to them.
inline std::vector<std::filesystem::path> guide_pages() {
  std::vector<std::filesystem::path> found;
  for (const std::filesystem::path& page : pages()) {
    const std::filesystem::path inside = page.lexically_relative(source_folder());
    if (*inside.begin() == "docs" || inside == "README.md" || inside == "ARCHITECTURE.md")
      found.push_back(page);
  }
  return found;
}

// Lines outside of fenced blocks; those inside are empty.
inline std::vector<std::string> prose_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  bool fenced = false;
  for (std::string line; std::getline(in, line);) {
    const bool mark = line.starts_with("```");
    lines.push_back(fenced || mark ? "" : line);
    fenced = fenced != mark;
  }
  return lines;
}

}  // namespace orrery::test
