// SPDX-License-Identifier: Apache-2.0
// Numbers the feeds of a tree.
#include "sim/engine/power/power_feed.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {

std::vector<PowerFeed> feeds_of(const FeedTree& tree, std::int32_t hosts) {
  std::vector<PowerFeed> feeds;
  for (const FeedLevel& level : tree) {
    const bool one = level.reach >= hosts;
    for (std::int32_t from = 0, i = 0; from < hosts; from += level.reach, ++i)
      feeds.push_back({.name = one ? level.name : fmt::format("{} {}", level.name, i),
                       .from = from,
                       .to = std::min(hosts, from + level.reach),
                       .limit = level.limit});
  }
  return feeds;
}

}  // namespace orrery
