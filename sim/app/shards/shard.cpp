// SPDX-License-Identifier: Apache-2.0
// Reads the part of a question that a process does.
#include "sim/app/shards/shard.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/question/settings/counts.h"

namespace orrery {

Shard parse_shard(const std::string& text) {
  const auto fail = [&](const std::string& expected) {
    throw Error({.file = "--shard", .found = in_quotes(text), .expected = expected});
  };
  const std::size_t slash = text.find('/');
  const auto index = whole_in(text.substr(0, slash));
  const auto count = slash == std::string::npos ? std::nullopt : whole_in(text.substr(slash + 1));
  if (!index || !count) fail("a number and how many there are, such as 0/8");
  if (*count < 1 || *count > most_shards) fail(fmt::format("1 to {} shards", most_shards));
  if (*index < 0 || *index >= *count)
    fail(fmt::format("a number from 0 to {}: shards count from 0", *count - 1));
  return {.index = *index, .count = *count};
}

std::string to_text(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

}  // namespace orrery
