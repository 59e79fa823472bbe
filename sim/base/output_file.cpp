// SPDX-License-Identifier: Apache-2.0
// Knows how to replace a file in one step, and whether that can be done.
#include "sim/base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/base/errors/check.h"
#include "sim/base/errors/machine_failed.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// What no other name of a file would mend.
bool is_of_the_machine(const std::string& problem) {
  for (const int code : {ENOSPC, EDQUOT, EIO, EFBIG, ENOMEM, EMFILE, ENFILE})
    if (problem == std::generic_category().message(code)) return true;
  return false;
}

[[noreturn]] void fail(const fs::path& file, const std::string& found) {
  const ErrorInfo info{
      .file = file.string(), .found = found, .expected = "a file that can be written"};
  if (is_of_the_machine(found)) throw MachineFailed(info);
  throw Error(info);
}

std::string problem_now() { return std::generic_category().message(errno); }

// Empty, or why the text could not be written.
std::string write_plain(const fs::path& file, std::string_view text) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (stream) return "";
  return errno != 0 ? problem_now() : "a failed write";
}

// Empty, or why the disk does not hold what was written. A rename may reach the disk before the
// bytes of the renamed file do: after a power failure the file would be there and empty.
std::string sync(const fs::path& path, int flags) {
  const int descriptor = open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) return problem_now();
  std::string problem;
  // File systems that cannot sync (some mounts of folders) say so with EINVAL.
  if (fsync(descriptor) != 0 && errno != EINVAL) problem = problem_now();
  close(descriptor);
  return problem;
}

// The folder's entry for the new name. A folder that may be searched but not read cannot be synced;
// the file is whole all the same.
void sync_folder_of(const fs::path& file) {
  const fs::path folder = file.parent_path();
  sync(folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY);
}

// A link's target is replaced, not the link.
fs::path target_of(const fs::path& file) {
  std::error_code status;
  const fs::path target = fs::is_symlink(file, status) ? fs::weakly_canonical(file, status) : file;
  return target.empty() ? file : target;
}

// What is written before it replaces the target.
fs::path partial_of(const fs::path& target) {
  fs::path partial = target;
  partial += ".partial" + std::to_string(getpid());
  return partial;
}

// Gives what was written beside its name where nothing has that name: the one step of which other
// processes see all or nothing.
bool take_new_name(const fs::path& partial, const fs::path& file) {
  std::string problem = sync(partial, O_WRONLY);
  bool taken = false;
  if (problem.empty() && link(partial.c_str(), file.c_str()) == 0) {
    taken = true;
  } else if (problem.empty() && errno != EEXIST) {
    // File systems without links: the name may be taken by two at once, who write the same.
    std::error_code failure;
    if (!fs::exists(file, failure)) fs::rename(partial, file, failure);
    taken = !failure;
    if (failure) problem = failure.message();
  }
  std::error_code ignored;
  fs::remove(partial, ignored);
  if (!problem.empty()) fail(file, problem);
  if (taken) sync_folder_of(file);
  return taken;
}

// Gives what was written beside the target its name, unless that met a problem.
void replace(const fs::path& file, const fs::path& target, const fs::path& partial,
             std::string problem) {
  if (problem.empty()) problem = sync(partial, O_WRONLY);
  std::error_code ignored, status;
  if (!problem.empty()) {
    fs::remove(partial, ignored);
    fail(file, problem);
  }
  fs::rename(partial, target, status);
  if (status) {
    fs::remove(partial, ignored);
    fail(file, status.message());
  }
  sync_folder_of(target);
}

// A pipe or a device, which is written in place.
bool is_special(const fs::path& file) {
  std::error_code status;
  return fs::exists(file, status) && !fs::is_regular_file(file, status);
}

void refuse_folder(const fs::path& file) {
  std::error_code status;
  if (file.empty()) fail(file, "no name");
  if (fs::is_directory(file, status)) fail(file, "a directory");
}

// The folders that make_folder would make, the outermost first. A link to nowhere is there: it is
// not ours to remove.
std::vector<fs::path> missing_folders(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code status;
  for (fs::path at = folder; !at.empty() && !fs::exists(fs::symlink_status(at, status));
       at = at.parent_path())
    missing.insert(missing.begin(), at);
  return missing;
}

}  // namespace

void check_writable_file(const fs::path& file) {
  refuse_folder(file);
  if (is_special(file)) {
    errno = 0;
    if (access(file.c_str(), W_OK) != 0) fail(file, problem_now());
    return;
  }
  const fs::path partial = partial_of(target_of(file));
  const std::string problem = write_plain(partial, "");
  std::error_code ignored;
  fs::remove(partial, ignored);
  if (!problem.empty()) fail(file, problem);
}

void make_folder(const fs::path& folder) {
  std::error_code failure;
  if (!folder.empty()) fs::create_directories(folder, failure);
  if (failure || !fs::is_directory(folder, failure))
    throw Error({.file = folder.string(),
                 .found = failure ? failure.message() : "no folder",
                 .expected = "a folder that can be made"});
}

void check_writable_folder(const fs::path& folder) {
  const std::vector<fs::path> missing = missing_folders(folder);
  const auto remove_made = [&missing] {
    std::error_code ignored;
    for (auto made = missing.rbegin(); made != missing.rend(); ++made) fs::remove(*made, ignored);
  };
  try {
    make_folder(folder);
    check_writable_file(folder / "probe");
  } catch (const Error& error) {
    remove_made();
    throw Error({.file = folder.string(),
                 .found = error.info().found,
                 .expected = "a folder that can be made or written into"});
  }
  remove_made();
}

void write_file(const fs::path& file, std::string_view text) {
  refuse_folder(file);
  if (is_special(file)) {
    const std::string problem = write_plain(file, text);
    if (!problem.empty()) fail(file, problem);
    return;
  }
  const fs::path target = target_of(file);
  const fs::path partial = partial_of(target);
  replace(file, target, partial, write_plain(partial, text));
}

GrowingFile::GrowingFile(fs::path file) : file_(std::move(file)) {
  refuse_folder(file_);
  target_ = target_of(file_);
  if (!is_special(file_)) partial_ = partial_of(target_);
  errno = 0;
  stream_.open(partial_.empty() ? file_ : partial_, std::ios::binary | std::ios::trunc);
  if (!stream_) fail(file_, errno != 0 ? problem_now() : "a file that cannot be opened");
}

GrowingFile::~GrowingFile() {
  std::error_code ignored;
  if (!partial_.empty()) fs::remove(partial_, ignored);
}

void GrowingFile::write(std::string_view text) {
  errno = 0;
  stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream_) fail(file_, errno != 0 ? problem_now() : "a failed write");
}

void GrowingFile::finish() {
  errno = 0;
  stream_.close();
  const std::string problem = stream_ ? "" : errno != 0 ? problem_now() : "a failed write";
  if (partial_.empty() && !problem.empty()) fail(file_, problem);
  if (!partial_.empty()) replace(file_, target_, std::exchange(partial_, {}), problem);
}

bool write_new_file(const fs::path& file, std::string_view text) {
  refuse_folder(file);
  std::error_code status;
  if (fs::exists(file, status)) return false;
  const fs::path partial = partial_of(file);
  const std::string problem = write_plain(partial, text);
  if (problem.empty()) return take_new_name(partial, file);
  std::error_code ignored;
  fs::remove(partial, ignored);
  fail(file, problem);
}

bool copy_new_file(const fs::path& from, const fs::path& file) {
  refuse_folder(file);
  std::error_code status, ignored;
  if (fs::exists(file, status)) return false;
  const fs::path partial = partial_of(file);
  fs::copy_file(from, partial, fs::copy_options::overwrite_existing, status);
  if (!status) return take_new_name(partial, file);
  fs::remove(partial, ignored);
  fail(file, status.message());
}

}  // namespace orrery
