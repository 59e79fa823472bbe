// SPDX-License-Identifier: Apache-2.0
// Knows how a dragonfly+ network is counted.
#include "topologies/dragonfly.h"

#include <fmt/format.h>

#include "sim/base/errors/check.h"

namespace orrery {

std::int64_t dragonfly_plus_max_groups(std::int64_t radix) { return radix * radix / 4 + 1; }

std::int64_t dragonfly_plus_max_hosts(std::int64_t radix) {
  return dragonfly_plus_max_groups(radix) * (radix * radix / 4);
}

DragonflyPlus dragonfly_plus(std::int64_t radix, std::int64_t hosts) {
  CHECK_THAT(hosts >= 1, "a network of nothing");
  // The upper bound keeps r^4 within 64 bits.
  if (radix < 4 || radix % 2 != 0 || radix > 16384)
    throw Error({.path = "radix",
                 .found = fmt::format("{}", radix),
                 .expected = "an even number of ports from 4 to 16,384: half face down"});
  if (hosts > dragonfly_plus_max_hosts(radix))
    throw Error({.path = "hosts",
                 .found = fmt::format("{}", hosts),
                 .expected = fmt::format("at most {}: {} groups of switches with {} ports",
                                         dragonfly_plus_max_hosts(radix),
                                         dragonfly_plus_max_groups(radix), radix)});
  const std::int64_t half = radix / 2;
  DragonflyPlus out{.radix = radix, .hosts = hosts, .hosts_per_group = half * half};
  out.groups = (hosts + out.hosts_per_group - 1) / out.hosts_per_group;
  const std::int64_t rest = hosts - (out.groups - 1) * out.hosts_per_group;
  out.leaves = (out.groups - 1) * half + (rest + half - 1) / half;
  // One leaf alone needs no spine.
  out.spines = out.leaves == 1 ? 0 : out.groups * half;
  out.leaf_spine = out.leaves == 1 ? 0 : out.leaves * half;
  if (out.groups > 1) {
    out.per_pair = out.hosts_per_group / (out.groups - 1);
    out.global_links = out.per_pair * (out.groups * (out.groups - 1) / 2);
  }
  out.diameter = out.groups > 1 ? 4 : out.leaves > 1 ? 3 : 1;
  return out;
}

}  // namespace orrery
