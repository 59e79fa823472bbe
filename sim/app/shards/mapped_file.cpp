// SPDX-License-Identifier: Apache-2.0
// Maps a file into memory.
#include "sim/app/shards/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/base/errors/machine_failed.h"

namespace orrery {

MappedFile::MappedFile(const std::filesystem::path& file) {
  const auto info = [&] {
    return ErrorInfo{.file = file.string(),
                     .found = std::strerror(errno),
                     .expected = "a file of results that can be read"};
  };
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error(info());
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    const ErrorInfo why = info();
    close(descriptor);
    throw Error(why);
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* bytes = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const ErrorInfo why = info();
  close(descriptor);
  if (bytes == MAP_FAILED) throw MachineFailed(why);
  if (size > 0) text_ = {static_cast<const char*>(bytes), size};
}

MappedFile::~MappedFile() {
  // The kernel takes back what it gave: the bytes were never ours to change.
  if (!text_.empty()) munmap(const_cast<char*>(text_.data()), text_.size());
}

}  // namespace orrery
