// SPDX-License-Identifier: Apache-2.0
// Reads files and unpacks gzip with zlib, also of several packed parts one after the other.
#include "sim/observe/input/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "sim/base/errors/check.h"
#include "sim/base/errors/file_guard.h"

namespace orrery::observe {
namespace {

constexpr std::size_t packed_piece = std::size_t{1} << 18U;
constexpr const char* what_is_expected = "a log, a profile or counters of a run";

[[noreturn]] void refuse(const std::string& file, const std::string& found) {
  throw Error({.file = file, .found = found, .expected = what_is_expected});
}

}  // namespace

struct ByteStream::Packed {
  z_stream stream{};
  std::array<char, packed_piece> input;
  bool part_ended = false;  // a whole packed part lies behind
  bool done = false;
};

ByteStream::ByteStream(const std::filesystem::path& file) : name_(file.string()) {
  check_file_allowed(file);
  file_ = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  const bool there = file_ >= 0 && fstat(file_, &about) == 0;
  const auto refuse_this = [&](const std::string& found) {
    if (file_ >= 0) close(file_);
    refuse(name_, found);
  };
  if (!there) refuse_this("no readable file");
  if (S_ISDIR(about.st_mode)) refuse_this("a folder");
  ahead_.resize(2);
  ahead_.resize(read_file(ahead_.data(), ahead_.size()));
  if (ahead_.empty()) refuse_this("an empty file");
  if (ahead_ != "\x1f\x8b") return;
  packed_ = std::make_unique<Packed>();
  constexpr int gzip_only = 16;
  if (inflateInit2(&packed_->stream, MAX_WBITS + gzip_only) != Z_OK)
    refuse_this("no memory to unpack it");
}

ByteStream::~ByteStream() {
  if (packed_) inflateEnd(&packed_->stream);
  close(file_);
}

std::size_t ByteStream::read_file(char* buffer, std::size_t size) {
  std::size_t have = 0;
  while (have < size) {
    const ssize_t some = ::read(file_, buffer + have, size - have);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) refuse(name_, std::string("a file that cannot be read: ") + std::strerror(errno));
    if (some == 0) break;
    have += static_cast<std::size_t>(some);
  }
  return have;
}

std::size_t ByteStream::read_packed(char* buffer, std::size_t size) {
  z_stream& z = packed_->stream;
  // zlib counts in 32 bits; callers ask for less.
  z.next_out = reinterpret_cast<Bytef*>(buffer);
  z.avail_out = static_cast<uInt>(std::min<std::size_t>(size, UINT_MAX));
  while (z.avail_out > 0 && !packed_->done) {
    if (z.avail_in == 0) {
      std::size_t some = ahead_.size();
      std::copy(ahead_.begin(), ahead_.end(), packed_->input.begin());
      ahead_.clear();
      some += read_file(packed_->input.data() + some, packed_->input.size() - some);
      z.next_in = reinterpret_cast<Bytef*>(packed_->input.data());
      z.avail_in = static_cast<uInt>(some);
      if (some == 0) {
        cut_ = !packed_->part_ended;
        packed_->done = true;
        break;
      }
    }
    if (packed_->part_ended) {
      // Zeros or foreign bytes behind a whole part are padding.
      if (*z.next_in != 0x1f) {
        packed_->done = true;
        break;
      }
      inflateReset(&z);
      packed_->part_ended = false;
    }
    const int result = inflate(&z, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      packed_->part_ended = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      cut_ = packed_->done = true;  // all that came before was checked by its own structure
    }
  }
  return size - z.avail_out;
}

std::size_t ByteStream::read(char* buffer, std::size_t size) {
  std::size_t have = 0;
  if (packed_) {
    have = read_packed(buffer, size);
  } else {
    have = std::min(size, ahead_.size());
    std::copy_n(ahead_.begin(), have, buffer);
    ahead_.erase(0, have);
    have += read_file(buffer + have, size - have);
  }
  given_ += have;
  return have;
}

std::string first_bytes(const std::filesystem::path& file, std::size_t most) {
  ByteStream stream(file);
  std::string bytes(most, '\0');
  bytes.resize(stream.read(bytes.data(), bytes.size()));
  return bytes;
}

}  // namespace orrery::observe
