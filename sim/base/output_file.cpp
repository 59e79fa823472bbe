// Knows how to replace a file in one step.
#include "sim/base/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "sim/base/check.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, const std::string& found) {
  throw Error({.file = file.string(), .found = found, .expected = "a file that can be written"});
}

// Empty, or why the text could not be written.
std::string write_plain(const fs::path& file, std::string_view text) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (stream) return "";
  return errno != 0 ? std::generic_category().message(errno) : "a failed write";
}

}  // namespace

void write_file(const fs::path& file, std::string_view text) {
  std::error_code status;
  if (fs::is_directory(file, status)) fail(file, "a directory");
  if (fs::exists(file, status) && !fs::is_regular_file(file, status)) {
    const std::string problem = write_plain(file, text);
    if (!problem.empty()) fail(file, problem);
    return;
  }
  // A link's target is replaced, not the link.
  fs::path target = fs::is_symlink(file, status) ? fs::weakly_canonical(file, status) : file;
  if (target.empty()) target = file;
  fs::path partial = target;
  partial += ".partial" + std::to_string(getpid());
  const std::string problem = write_plain(partial, text);
  std::error_code ignored;
  if (!problem.empty()) {
    fs::remove(partial, ignored);
    fail(file, problem);
  }
  fs::rename(partial, target, status);
  if (status) {
    fs::remove(partial, ignored);
    fail(file, status.message());
  }
}

}  // namespace orrery
