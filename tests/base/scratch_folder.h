// SPDX-License-Identifier: Apache-2.0
// Knows a folder for a test's files that goes away with the test.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace orrery {

class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("orrery_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  // Writes a file into the folder and returns where it is.
  std::filesystem::path add(std::string_view name, std::string_view text) const {
    std::ofstream stream(path_ / name, std::ios::binary);
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace orrery
