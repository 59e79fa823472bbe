// SPDX-License-Identifier: Apache-2.0
// Knows how a result reaches the disk: whole or not at all.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace orrery {

// Writes beside the file, syncs and renames, so that a reader never sees half of it and a failure,
// of the power too, leaves the old one or the new one whole. What is not a regular file (a pipe,
// /dev/stdout) is written in place. Error when it cannot be written.
void write_file(const std::filesystem::path& file, std::string_view text);

// The same of a text that comes piece by piece. Without finish() nothing stays.
class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path file);
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  ~GrowingFile();
  void write(std::string_view text);
  void finish();

 private:
  std::filesystem::path file_, target_, partial_;  // partial_: empty of a pipe, and at the end
  std::ofstream stream_;
};

// Whether write_file, or files in the folder, would find a place: for commands that work long
// before they write. Error when not. Nothing stays behind: a folder that is missing is made and
// removed.
void check_writable_file(const std::filesystem::path& file);
void check_writable_folder(const std::filesystem::path& folder);

// Makes the folder and those above it. Error when it is a file or cannot be made.
void make_folder(const std::filesystem::path& folder);

// The same where there is no such file yet; false, and nothing is written, where there is one, also
// when another process makes it meanwhile. The copy is of a file's bytes.
bool write_new_file(const std::filesystem::path& file, std::string_view text);
bool copy_new_file(const std::filesystem::path& from, const std::filesystem::path& file);

}  // namespace orrery
