// SPDX-License-Identifier: Apache-2.0
// Finds places for gangs.
#include "sim/engine/jobs/placer.h"

#include <algorithm>

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

// Which hosts with room for the rest of a gang come first: the fullest, the emptiest, or those on
// which fragments grow least.
struct RestRule {
  bool fullest = true;
  const FragmentTable* fragments = nullptr;
  // Free accelerators of those that come after `before` others, of numbers of them.
  std::int32_t free_at(std::int32_t before, std::int32_t gpus, std::int32_t most) const {
    if (fragments != nullptr) return fragments->hosts_for(gpus)[static_cast<std::size_t>(before)];
    return fullest ? gpus + before : most - before;
  }
};

// The host for the rest of a gang, of equals the lowest.
std::int32_t host_for(const Slots& slots, HostRange range, std::int32_t gpus, const RestRule& rule,
                      const Grants& out) {
  const std::int32_t most = slots.shape().gpus_per_host;
  for (std::int32_t before = 0; before <= most - gpus; ++before) {
    const HostSet& hosts = slots.with_free(rule.free_at(before, gpus, most));
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

// Anywhere in a range; there is a place.
void find_anywhere(const Slots& slots, HostRange range, Gang gang, const RestRule& rule,
                   Grants& out) {
  out.clear();
  take_whole(slots, range, gang.hosts, out);
  if (gang.rest > 0) grant_rest(out, host_for(slots, range, gang.rest, rule, out), gang.rest);
}

HostRange range_of(const Slots& slots, std::size_t level, std::int32_t group) {
  const std::int32_t reach = slots.shape().levels[level].reach;
  return {group * reach, std::min((group + 1) * reach, slots.shape().hosts)};
}

std::vector<std::int32_t> groups_in(const Slots& slots, std::size_t level, HostRange range) {
  const std::int32_t reach = slots.shape().levels[level].reach;
  std::vector<std::int32_t> groups;
  for (std::int32_t g = range.from / reach; g * reach < range.to; ++g) groups.push_back(g);
  return groups;
}

// Of those that have so many whole hosts the one with fewest; where none has, the one with most.
std::vector<std::int32_t>::iterator best_group(const Slots& slots, std::size_t level,
                                               std::vector<std::int32_t>& groups,
                                               std::int32_t hosts) {
  auto best = groups.begin();
  for (auto at = groups.begin(); at != groups.end(); ++at) {
    const std::int32_t whole = slots.whole_hosts(level, *at);
    const std::int32_t now = slots.whole_hosts(level, *best);
    if (whole >= hosts ? now < hosts || whole < now : now < hosts && whole > now) best = at;
  }
  return best;
}

// Of those that have whole hosts and whose links are used least the best one.
std::vector<std::int32_t>::iterator least_used_group(const Slots& slots, std::size_t level,
                                                     std::vector<std::int32_t>& groups,
                                                     std::int32_t hosts, PlaceJudge& judge) {
  std::vector<std::int32_t> least;
  double use = 0;
  for (const std::int32_t group : groups) {
    if (slots.whole_hosts(level, group) == 0) continue;
    const double now = judge.used(level, group);
    if (!least.empty() && now > use) continue;
    if (now < use) least.clear();
    use = now;
    least.push_back(group);
  }
  if (least.empty()) return groups.begin();
  return std::find(groups.begin(), groups.end(), *best_group(slots, level, least, hosts));
}

// Whole hosts of the range, under as few groups of each level as it takes; `level`: how many levels
// below may still divide it. Groups that are used whole go first, most hosts first; what is left
// goes into the one that suits it best. With a judge those go first whose links are used least.
void take_nested(const Slots& slots, std::size_t level, HostRange range, std::int32_t hosts,
                 PlaceJudge* judge, Grants& out) {
  if (level == 0) return take_whole(slots, range, hosts, out);
  std::vector<std::int32_t> groups = groups_in(slots, level - 1, range);
  while (hosts > 0 && !groups.empty()) {
    const auto chosen = judge == nullptr
                            ? best_group(slots, level - 1, groups, hosts)
                            : least_used_group(slots, level - 1, groups, hosts, *judge);
    const std::int32_t part = std::min(hosts, slots.whole_hosts(level - 1, *chosen));
    if (part == 0) return;
    take_nested(slots, level - 1, range_of(slots, level - 1, *chosen), part, judge, out);
    hosts -= part;
    groups.erase(chosen);
  }
}

// In a range that has the whole hosts; whether it has one for the rest, too.
bool find_within(const Slots& slots, std::size_t level, HostRange range, Gang gang,
                 PlaceJudge* judge, Grants& out) {
  out.clear();
  take_nested(slots, level, range, gang.hosts, judge, out);
  std::sort(out.begin(), out.end(),
            [](const HostGrant& a, const HostGrant& b) { return a.host < b.host; });
  if (gang.rest == 0) return true;
  const std::int32_t host = host_for(slots, range, gang.rest, {}, out);
  if (host < 0) return false;
  grant_rest(out, host, gang.rest);
  return true;
}

// In the smallest group that has room for the whole gang, else under as few groups of those below
// `levels` as it takes; there is a place in the range.
void find_nested(const Slots& slots, std::size_t levels, HostRange site, Gang gang, Grants& out) {
  if (gang.hosts == 0) return find_anywhere(slots, site, gang, {}, out);
  for (std::size_t level = 0; level < levels; ++level) {
    std::vector<std::int32_t> groups = groups_in(slots, level, site);
    const std::int32_t group =
        *best_group(slots, level, groups, gang.hosts + (gang.rest > 0 ? 1 : 0));
    if (slots.whole_hosts(level, group) < gang.hosts) continue;
    if (find_within(slots, level, range_of(slots, level, group), gang, nullptr, out)) return;
  }
  find_within(slots, levels, site, gang, nullptr, out);
}

// There is a place in the range.
void find_random(const Slots& slots, HostRange range, Gang gang, RandomStream& random,
                 Grants& out) {
  out.clear();
  const HostSet& whole = slots.with_free(slots.shape().gpus_per_host);
  std::vector<std::int32_t> hosts;
  for (std::int32_t host = whole.first(range.from); host >= 0 && host < range.to;
       host = whole.first(host + 1)) {
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
  if (gang.rest == 0) return;
  std::vector<std::int32_t> room;
  for (std::int32_t host = range.from; host < range.to; ++host)
    if (slots.free_of(host) >= gang.rest && !is_granted(out, host)) room.push_back(host);
  grant_rest(out, room[random.below(room.size())], gang.rest);
}

// Whether one group has room for a gang.
bool group_has(const Slots& slots, std::size_t level, std::int32_t group, Gang gang) {
  const std::int32_t whole = slots.whole_hosts(level, group);
  if (whole < gang.hosts) return false;
  if (gang.rest == 0 || whole > gang.hosts) return true;
  const HostRange range = range_of(slots, level, group);
  for (std::int32_t free = gang.rest; free < slots.shape().gpus_per_host; ++free) {
    const std::int32_t host = slots.with_free(free).first(range.from);
    if (host >= 0 && host < range.to) return true;
  }
  return false;
}

// Of the groups that have room the fullest, of equals the first; with `emptiest` that one. -1:
// none.
std::int32_t group_for(const Slots& slots, std::size_t level, Gang gang, bool emptiest) {
  std::int32_t best = -1;
  for (std::int32_t g = 0; g < slots.groups(level); ++g) {
    if (!group_has(slots, level, g, gang)) continue;
    const std::int32_t whole = slots.whole_hosts(level, g);
    const std::int32_t now = best < 0 ? 0 : slots.whole_hosts(level, best);
    if (best < 0 || (emptiest ? whole > now : whole < now)) best = g;
  }
  return best;
}

// Where a gang may go so that it meets others less than where least-level puts it.
struct Candidate {
  std::size_t level = 0;  // below which its range is divided
  HostRange range;
  bool apart = false;  // groups whose links are used least first
};

// The smallest level of which one group holds a place; `levels`: none below it does.
std::size_t level_of(const Slots& slots, std::size_t levels, const Grants& place) {
  const std::int32_t first = place.front().host, last = place.back().host + place.back().hosts - 1;
  for (std::size_t level = 0; level < levels; ++level) {
    const std::int32_t reach = slots.shape().levels[level].reach;
    if (first / reach == last / reach) return level;
  }
  return levels;
}

// Of the groups of a level that have room in a range two of the fullest, and the emptiest.
std::vector<std::int32_t> likely_groups(const Slots& slots, std::size_t level, HostRange site,
                                        Gang gang) {
  std::vector<std::int32_t> groups = groups_in(slots, level, site);
  std::erase_if(groups, [&](std::int32_t g) { return !group_has(slots, level, g, gang); });
  std::stable_sort(groups.begin(), groups.end(), [&](std::int32_t a, std::int32_t b) {
    return slots.whole_hosts(level, a) < slots.whole_hosts(level, b);
  });
  constexpr std::size_t fullest = 2;
  if (groups.size() > fullest + 1) groups.erase(groups.begin() + fullest, groups.end() - 1);
  return groups;
}

// At most eight, under groups of the level of the place that least-level has, and of the next one.
std::vector<Candidate> candidates(const Slots& slots, std::size_t levels, HostRange site, Gang gang,
                                  const Grants& place) {
  std::vector<Candidate> out;
  const std::size_t own = level_of(slots, levels, place);
  for (std::size_t level = own; level <= std::min(own + 1, levels); ++level) {
    std::vector<HostRange> ranges;
    if (level == levels)
      ranges.push_back(site);
    else
      for (const std::int32_t group : likely_groups(slots, level, site, gang))
        ranges.push_back(range_of(slots, level, group));
    for (const HostRange range : ranges) {
      if (level == own) out.push_back({level, range, false});
      out.push_back({level, range, true});
    }
  }
  return out;
}

// There is a place in the range.
void find_least_contention(const Slots& slots, std::size_t levels, HostRange site, Gang gang,
                           PlaceJudge* judge, std::uint32_t job, Grants& out) {
  find_nested(slots, levels, site, gang, out);
  if (judge == nullptr || job == no_job || gang.hosts == 0 || !judge->meets(job, out)) return;
  double least = judge->lost(job, out);
  Grants other;
  for (const Candidate& one : candidates(slots, levels, site, gang, out)) {
    if (!find_within(slots, one.level, one.range, gang, one.apart ? judge : nullptr, other))
      continue;
    const double lost = other == out ? least : judge->lost(job, other);
    // Sums of shares of one place may differ in their last digits.
    if (lost >= least * (1 - 1e-9)) continue;
    least = lost;
    out = other;
  }
}

Gang gang_of(const Slots& slots, std::int32_t gpus) {
  const std::int32_t of_host = slots.shape().gpus_per_host;
  return {gpus / of_host, gpus % of_host};
}

}  // namespace

bool Placer::fits(const Slots& slots, std::int32_t gpus, std::int32_t within) {
  if (gpus > slots.free()) return false;
  if (slots.shape().hosts == 1) return true;
  // Every rule finds a place where there is one: whole hosts, and one more for the rest.
  const Gang gang = gang_of(slots, gpus);
  if (within != no_level)
    return group_for(slots, static_cast<std::size_t>(within), gang, false) >= 0;
  const std::int32_t of_host = slots.shape().gpus_per_host;
  const std::int32_t whole = slots.with_free(of_host).size();
  if (whole < gang.hosts) return false;
  if (gang.rest == 0 || whole > gang.hosts) return true;
  for (std::int32_t free = gang.rest; free < of_host; ++free)
    if (slots.with_free(free).size() > 0) return true;
  return false;
}

bool Placer::find(const Slots& slots, std::int32_t gpus, Grants& out, std::int32_t within,
                  std::uint32_t job) {
  // Whoever must stand within a level has a place where a group is found below.
  if (within == no_level ? !fits(slots, gpus) : gpus > slots.free()) return false;
  if (slots.shape().hosts == 1) {
    out.assign(1, {.host = 0, .hosts = 1, .gpus = gpus});
    return true;
  }
  const Gang gang = gang_of(slots, gpus);
  HostRange range{0, slots.shape().hosts};
  std::size_t levels = slots.shape().levels.size();
  if (within != no_level) {
    levels = static_cast<std::size_t>(within);
    const std::int32_t group = group_for(slots, levels, gang, rule_ == JobPlace::spread);
    if (group < 0) return false;
    range = range_of(slots, levels, group);
  }
  switch (rule_) {
    case JobPlace::least_level:
      find_nested(slots, levels, range, gang, out);
      break;
    case JobPlace::least_contention:
      find_least_contention(slots, levels, range, gang, judge_, job, out);
      break;
    case JobPlace::random:
      find_random(slots, range, gang, random_, out);
      break;
    default:
      find_anywhere(slots, range, gang,
                    {.fullest = rule_ != JobPlace::spread, .fragments = fragments_.get()}, out);
  }
  return true;
}

}  // namespace orrery
