// SPDX-License-Identifier: Apache-2.0
// Holds a file's bytes in memory that the kernel fills as they are looked at.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

namespace orrery {

// The bytes that the file has when it is opened; it may grow meanwhile. Error where it cannot be
// read, MachineFailed where the machine has no more room for maps.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& file);
  MappedFile(MappedFile&& other) noexcept : text_(std::exchange(other.text_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

}  // namespace orrery
