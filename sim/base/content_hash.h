// SPDX-License-Identifier: Apache-2.0
// Knows a number that tells contents apart: the same on every machine and in every release.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

// 64 bits of a text. Not for secrets: whoever wants to can make two texts with one hash.
std::uint64_t content_hash(std::string_view text);
// The hash of a list, from the hash of what stands before and that of the next item.
std::uint64_t joined_hash(std::uint64_t before, std::uint64_t next);
// 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace orrery
