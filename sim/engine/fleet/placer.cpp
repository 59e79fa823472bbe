// SPDX-License-Identifier: Apache-2.0
// Finds places for gangs.
#include <algorithm>

#include "sim/engine/fleet/policy.h"

namespace orrery {
namespace {

struct HostRange {
  std::int32_t from = 0, to = 0;  // to: behind the last
};

void grant(Grants& out, std::int32_t host, std::int32_t gpus) {
  if (!out.empty() && out.back().gpus == gpus && out.back().host + out.back().hosts == host)
    ++out.back().hosts;
  else
    out.push_back({.host = host, .hosts = 1, .gpus = gpus});
}

std::int32_t granted_hosts(const Grants& out) {
  std::int32_t hosts = 0;
  for (const HostGrant& g : out) hosts += g.hosts;
  return hosts;
}

bool is_granted(const Grants& out, std::int32_t host) {
  return std::any_of(out.begin(), out.end(),
                     [&](const HostGrant& g) { return host >= g.host && host < g.host + g.hosts; });
}

// So many hosts of the range that are free as a whole, lowest first; fewer where there are not.
void take_whole(const Slots& slots, HostRange range, std::int32_t hosts, Grants& out) {
  const HostSet& whole = slots.with_free(slots.shape().gpus_per_host);
  for (std::int32_t host = whole.first(range.from); hosts > 0 && host >= 0 && host < range.to;
       host = whole.first(host + 1), --hosts) {
    grant(out, host, slots.shape().gpus_per_host);
    if (host + 1 >= range.to) break;
  }
}

// The host for the rest of a gang: of the fullest with room, or the emptiest, the lowest.
std::int32_t host_for(const Slots& slots, HostRange range, std::int32_t gpus, bool fullest,
                      const Grants& out) {
  const std::int32_t most = slots.shape().gpus_per_host;
  for (std::int32_t i = gpus; i <= most; ++i) {
    const std::int32_t free = fullest ? i : most - (i - gpus);
    const HostSet& hosts = slots.with_free(free);
    for (std::int32_t host = hosts.first(range.from); host >= 0 && host < range.to;) {
      if (!is_granted(out, host)) return host;
      host = host + 1 < range.to ? hosts.first(host + 1) : -1;
    }
  }
  return -1;
}

// Puts the rest in its place among the whole hosts, which stand in order.
void grant_rest(Grants& out, std::int32_t host, std::int32_t gpus) {
  const HostGrant rest{.host = host, .hosts = 1, .gpus = gpus};
  for (std::size_t i = 0; i < out.size(); ++i) {
    HostGrant& g = out[i];
    if (host < g.host) {
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(i), rest);
      return;
    }
  }
  out.push_back(rest);
}

struct Gang {
  std::int32_t hosts = 0, rest = 0;  // whole hosts, and accelerators of one more
};

bool find_in(const Slots& slots, HostRange range, Gang gang, bool fullest, Grants& out) {
  out.clear();
  take_whole(slots, range, gang.hosts, out);
  if (granted_hosts(out) < gang.hosts) return false;
  if (gang.rest == 0) return true;
  const std::int32_t host = host_for(slots, range, gang.rest, fullest, out);
  if (host < 0) return false;
  grant_rest(out, host, gang.rest);
  return true;
}

HostRange range_of(const Slots& slots, std::size_t level, std::int32_t group) {
  const std::int32_t reach = slots.shape().levels[level].reach;
  return {group * reach, std::min((group + 1) * reach, slots.shape().hosts)};
}

// The group of a level inside `range` with fewest whole hosts among those that have `hosts`; where
// none has, the one with most of them.
std::int32_t best_group(const Slots& slots, std::size_t level, HostRange range,
                        std::int32_t hosts) {
  const std::int32_t reach = slots.shape().levels[level].reach;
  std::int32_t best = -1, most = -1;
  for (std::int32_t g = range.from / reach; g * reach < range.to; ++g) {
    const std::int32_t whole = slots.whole_hosts(level, g);
    if (whole >= hosts && (best < 0 || whole < slots.whole_hosts(level, best))) best = g;
    if (most < 0 || whole > slots.whole_hosts(level, most)) most = g;
  }
  return best >= 0 ? best : most;
}

// Whole hosts of the range, under as few groups of each level as it takes; `level`: the levels
// below that may still divide it.
void take_nested(const Slots& slots, std::size_t level, HostRange range, std::int32_t hosts,
                 Grants& out) {
  if (level == 0) return take_whole(slots, range, hosts, out);
  std::vector<std::int32_t> done;
  const std::int32_t reach = slots.shape().levels[level - 1].reach;
  // Groups that are used whole go first, most hosts first; what is left goes into the one that
  // suits it best.
  std::vector<std::int32_t> groups;
  for (std::int32_t g = range.from / reach; g * reach < range.to; ++g) groups.push_back(g);
  while (hosts > 0 && !groups.empty()) {
    auto chosen = groups.end();
    bool holds_all = false;
    for (auto at = groups.begin(); at != groups.end(); ++at) {
      const std::int32_t whole = slots.whole_hosts(level - 1, *at);
      const bool all = whole >= hosts;
      if (chosen == groups.end() || (all && !holds_all)) {
        chosen = at;
        holds_all = all;
        continue;
      }
      if (all != holds_all) continue;
      const std::int32_t now = slots.whole_hosts(level - 1, *chosen);
      if (holds_all ? whole < now : whole > now) chosen = at;
    }
    const std::int32_t part = std::min(hosts, slots.whole_hosts(level - 1, *chosen));
    if (part == 0) return;
    take_nested(slots, level - 1, range_of(slots, level - 1, *chosen), part, out);
    hosts -= part;
    groups.erase(chosen);
  }
}

// In the smallest group that has room for the whole gang, else under as few groups as it takes.
bool find_nested(const Slots& slots, Gang gang, Grants& out) {
  const HostRange site{0, slots.shape().hosts};
  if (gang.hosts == 0) return find_in(slots, site, gang, true, out);
  for (std::size_t level = 0; level < slots.shape().levels.size(); ++level) {
    const std::int32_t needed = gang.hosts + (gang.rest > 0 ? 1 : 0);
    const std::int32_t group = best_group(slots, level, site, needed);
    if (slots.whole_hosts(level, group) < gang.hosts) continue;
    // Inside of it again under as few groups as it takes.
    out.clear();
    const HostRange range = range_of(slots, level, group);
    take_nested(slots, level, range, gang.hosts, out);
    std::sort(out.begin(), out.end(),
              [](const HostGrant& a, const HostGrant& b) { return a.host < b.host; });
    if (gang.rest == 0) return true;
    const std::int32_t host = host_for(slots, range, gang.rest, true, out);
    if (host < 0) continue;
    grant_rest(out, host, gang.rest);
    return true;
  }
  out.clear();
  take_nested(slots, slots.shape().levels.size(), site, gang.hosts, out);
  if (granted_hosts(out) < gang.hosts) return false;
  std::sort(out.begin(), out.end(),
            [](const HostGrant& a, const HostGrant& b) { return a.host < b.host; });
  if (gang.rest == 0) return true;
  const std::int32_t host = host_for(slots, site, gang.rest, true, out);
  if (host < 0) return false;
  grant_rest(out, host, gang.rest);
  return true;
}

bool find_random(const Slots& slots, Gang gang, RandomStream& random, Grants& out) {
  out.clear();
  const HostSet& whole = slots.with_free(slots.shape().gpus_per_host);
  if (whole.size() < gang.hosts) return false;
  std::vector<std::int32_t> hosts;
  for (std::int32_t host = whole.first(); host >= 0; host = whole.first(host + 1)) {
    hosts.push_back(host);
    if (host + 1 >= slots.shape().hosts) break;
  }
  for (std::int32_t i = 0; i < gang.hosts; ++i) {
    const auto left = hosts.size() - static_cast<std::size_t>(i);
    std::swap(hosts[static_cast<std::size_t>(i)],
              hosts[static_cast<std::size_t>(i) + random.below(left)]);
  }
  hosts.resize(static_cast<std::size_t>(gang.hosts));
  std::sort(hosts.begin(), hosts.end());
  for (const std::int32_t host : hosts) grant(out, host, slots.shape().gpus_per_host);
  if (gang.rest == 0) return true;
  std::vector<std::int32_t> room;
  for (std::int32_t host = 0; host < slots.shape().hosts; ++host)
    if (slots.free_of(host) >= gang.rest && !is_granted(out, host)) room.push_back(host);
  if (room.empty()) return false;
  grant_rest(out, room[random.below(room.size())], gang.rest);
  return true;
}

}  // namespace

bool Placer::fits(const Slots& slots, std::int32_t gpus) {
  if (gpus > slots.free()) return false;
  if (slots.shape().hosts == 1) return true;
  // Every rule finds a place where there is one: whole hosts, and one more for the rest.
  const std::int32_t of_host = slots.shape().gpus_per_host;
  const std::int32_t hosts = gpus / of_host, rest = gpus % of_host;
  const std::int32_t whole = slots.with_free(of_host).size();
  if (whole < hosts) return false;
  if (rest == 0 || whole > hosts) return true;
  for (std::int32_t free = rest; free < of_host; ++free)
    if (slots.with_free(free).size() > 0) return true;
  return false;
}

bool Placer::find(const Slots& slots, std::int32_t gpus, Grants& out) {
  if (!fits(slots, gpus)) return false;
  if (slots.shape().hosts == 1) {
    out.assign(1, {.host = 0, .hosts = 1, .gpus = gpus});
    return true;
  }
  const std::int32_t of_host = slots.shape().gpus_per_host;
  const Gang gang{gpus / of_host, gpus % of_host};
  switch (rule_) {
    case JobPlace::least_level:
      return find_nested(slots, gang, out);
    case JobPlace::random:
      return find_random(slots, gang, random_, out);
    default:
      return find_in(slots, {0, slots.shape().hosts}, gang, rule_ != JobPlace::spread, out);
  }
}

}  // namespace orrery
