// SPDX-License-Identifier: Apache-2.0
// Knows where the tests' logs, profiles and counters lie.
#pragma once

#include <filesystem>
#include <string>

#include "sim/base/input_file.h"

namespace orrery::observe {

inline std::filesystem::path observed_file(const std::string& name) {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "tests/observe/files" / name;
}

inline std::string observed_text_of(const std::string& name) {
  return content_of(observed_file(name));
}

}  // namespace orrery::observe
