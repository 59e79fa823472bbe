// SPDX-License-Identifier: Apache-2.0
// Knows the feeds of power above the hosts of a shared cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

// What carries the power of hosts `from` to `to` - 1: accelerators with their shares of hosts.
struct PowerFeed {
  std::string name;  // "hall 1"
  std::int32_t from = 0, to = 0;
  std::int64_t limit = 0;  // milliwatts; 0: none
};

// Feeds of one level, next to each other from host 0 on, with as many hosts each; the last one may
// have fewer.
struct FeedLevel {
  std::string name;        // "hall"
  std::int32_t reach = 1;  // hosts
  std::int64_t limit = 0;  // milliwatts of each; 0: none
  double share_left = 0;   // of the limit while one of its supplies is lost; 0: its hosts go out
};

// From the inside out, each reach a multiple of the one below.
using FeedTree = std::vector<FeedLevel>;

// Feeds of all levels, level by level.
std::vector<PowerFeed> feeds_of(const FeedTree& tree, std::int32_t hosts);

}  // namespace orrery
