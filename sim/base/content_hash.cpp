// SPDX-License-Identifier: Apache-2.0
// Hashes eight bytes at a time, each mixed as the numbers of splitmix64 are.
#include "sim/base/content_hash.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

// The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30U;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27U;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

// Up to eight bytes, the first lowest, whatever the machine's own order is.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return word;
}

}  // namespace

std::uint64_t joined_hash(std::uint64_t before, std::uint64_t next) {
  constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15ULL;  // splitmix64's increment
  return mixed((before + golden_ratio) ^ mixed(next));
}

std::uint64_t content_hash(std::string_view text) {
  std::uint64_t hash = text.size();
  for (std::size_t at = 0; at < text.size(); at += 8)
    hash = joined_hash(hash, word_of(text.substr(at, std::min<std::size_t>(8, text.size() - at))));
  return hash;
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace orrery
