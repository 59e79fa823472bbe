// SPDX-License-Identifier: Apache-2.0
// Knows where the tests' logs, profiles and counters lie.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace orrery::observe {

inline std::filesystem::path observed_file(const std::string& name) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "tests/observe/files" / name;
}

inline std::string observed_text_of(const std::string& name) {
  std::ifstream stream(observed_file(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace orrery::observe
