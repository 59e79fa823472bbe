// SPDX-License-Identifier: Apache-2.0
// Knows how the bytes of a file come, packed with gzip or not, piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace orrery::observe {

// Reads a file once from its start to its end, in memory that does not grow with it.
class ByteStream {
 public:
  // Error: a folder, a file that cannot be read, an empty one.
  explicit ByteStream(const std::filesystem::path& file);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream();

  // Fills the buffer as far as there is text; fewer bytes than asked for: it ends here.
  std::size_t read(char* buffer, std::size_t size);
  // Whether packed data ended before its own end: its writer was killed, or it is broken.
  bool is_cut() const { return cut_; }
  bool is_packed() const { return packed_ != nullptr; }
  // Bytes that were given out.
  std::uint64_t given() const { return given_; }
  const std::string& name() const { return name_; }

 private:
  struct Packed;
  std::size_t read_file(char* buffer, std::size_t size);
  std::size_t read_packed(char* buffer, std::size_t size);

  std::string name_;
  int file_ = -1;
  std::unique_ptr<Packed> packed_;  // none: the file is as it is
  std::string ahead_;               // bytes that were read to see what the file is
  bool cut_ = false;
  std::uint64_t given_ = 0;
};

// The first bytes of a file as it is packed or not: at most `most`. Errors: as of ByteStream.
std::string first_bytes(const std::filesystem::path& file, std::size_t most);

}  // namespace orrery::observe
