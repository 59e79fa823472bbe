// SPDX-License-Identifier: Apache-2.0
// Knows how a router hashes each queue pair of a flow onto one path, switch by switch.
#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "topologies/hashing.h"
#include "topologies/routing.h"

namespace orrery {
namespace {

// Queue pairs that meet on a link add up there.
void add(std::vector<RouteLink>& out, std::size_t begin, const LinkName& link, double share) {
  for (std::size_t i = begin; i < out.size(); ++i)
    if (out[i].link == link) {
      out[i].share += share;
      return;
    }
  out.push_back({.link = link, .share = share});
}

// Switches hash on their own: tells their numbers apart.
std::uint64_t at_switch(std::uint64_t hash, std::uint64_t tier, std::int64_t group,
                        std::int32_t lower) {
  return hash_with(
      hash,
      (static_cast<std::uint64_t>(group) << 24U ^ static_cast<std::uint64_t>(lower)) << 2U ^ tier);
}

// The chosen one of the first `below` numbers for which usable() holds; -1 when there is none.
// With all usable it is hash_choice(hash, below).
template <class Usable>
std::int32_t choose(std::uint64_t hash, std::int64_t below, const Usable& usable) {
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < below; ++i) all += usable(i) ? 1 : 0;
  if (all == 0) return -1;
  std::int64_t left = hash_choice(hash, all);
  std::int64_t i = 0;
  for (;; ++i)
    if (usable(i) && left-- == 0) break;
  return static_cast<std::int32_t>(i);
}

// Quotient and remainder, without the division where it is by one, which it mostly is.
std::pair<std::int32_t, std::int32_t> divided(std::int64_t number, std::int64_t by) {
  if (by == 1) return {static_cast<std::int32_t>(number), 0};
  return {static_cast<std::int32_t>(number / by), static_cast<std::int32_t>(number % by)};
}

// One of the parallel links of a pair of switches; nothing is hashed where there is one.
template <class Usable, class Hash>
std::int32_t lane(std::int64_t lanes, bool touched, const Usable& usable, const Hash& hash) {
  if (touched) return choose(hash(), lanes, usable);
  return lanes == 1 ? 0 : static_cast<std::int32_t>(hash_choice(hash(), lanes));
}

}  // namespace

// Classes are single planes, spines, cores and lanes here, in order: indices are numbers.
Router::Hop Router::hash_leaf_link(const Path& p, const PlaneClass& plane,
                                   std::uint64_t hash) const {
  const std::uint64_t here = at_switch(hash, 0, p.a.group, p.a.lower);
  const std::int64_t links = spines_ * leaf_lanes_;
  std::int64_t chosen = 0;
  if (!p.touched) {
    chosen = hash_choice(here, links);
  } else {
    chosen = choose(here, links, [&](std::int64_t link) {
      const SpineClass& spine = spine_at(plane, link / leaf_lanes_);
      return leaf_link_left(p.a, plane, p.spines + spine.first,
                            static_cast<std::int32_t>(link % leaf_lanes_)) > 0 &&
             spine_weight(p, plane, spine) > 0;
    });
  }
  CHECK_THAT(chosen >= 0, "planes without a path are not chosen");
  const auto [upper, lane] = divided(chosen, leaf_lanes_);
  return {.upper = upper, .lane = lane};
}

// Up to a core that also leads down to the other pod. dragonfly_plus: to the other group.
Router::Hop Router::hash_core_link(const Path& p, const PlaneClass& plane, const SpineClass& spine,
                                   std::uint64_t hash) const {
  const std::uint64_t here = at_switch(hash, 1, p.a.pod, p.spines + spine.first);
  const std::int64_t links = cores_ * core_lanes_;
  std::int64_t chosen = 0;
  if (!p.touched) {
    chosen = hash_choice(here, links);
  } else {
    chosen = choose(here, links, [&](std::int64_t link) {
      const CoreClass& core = core_at(spine, link / core_lanes_);
      return spine_link_left(p.a, plane, p.spines + spine.first, core_name(core, p.b),
                             static_cast<std::int32_t>(link % core_lanes_)) > 0 &&
             core_weight(p, plane, spine, core) > 0;
    });
  }
  CHECK_THAT(chosen >= 0, "spines without a path are not chosen");
  const auto [upper, lane] = divided(chosen, core_lanes_);
  return {.upper = upper, .lane = lane};
}

template <class Put>
void Router::hash_switches(const Path& p, const PlaneClass& plane, std::uint64_t hash,
                           const Put& put) const {
  const auto number = static_cast<std::uint16_t>(plane.first);
  const Hop up = hash_leaf_link(p, plane, hash);
  const SpineClass& spine = spine_at(plane, up.upper);
  const std::int32_t name = p.spines + spine.first;
  LinkName link{.kind = LinkKind::up,
                .plane = number,
                .lower = p.a.lower,
                .group = p.a.group,
                .upper = name,
                .parallel = up.lane};
  put(link);
  if (p.tier == 3) {
    const Hop over = hash_core_link(p, plane, spine, hash);
    const CoreClass& core = core_at(spine, over.upper);
    link = {.kind = LinkKind::up,
            .tier = 1,
            .plane = number,
            .lower = name,
            .group = p.a.pod,
            .upper = core_name(core, p.b),
            .parallel = over.lane};
    put(link);
    if (!dragonfly_) {
      const auto usable = [&](std::int64_t lane) {
        return spine_link_left(p.b, plane, name, core.first, static_cast<std::int32_t>(lane)) > 0;
      };
      link.kind = LinkKind::down;
      link.group = p.b.pod;
      link.parallel = lane(core_lanes_, p.touched, usable,
                           [&] { return at_switch(hash, 2, p.b.pod, core.first); });
      put(link);
    }
  }
  const auto usable = [&](std::int64_t lane) {
    return leaf_link_left(p.b, plane, name, static_cast<std::int32_t>(lane)) > 0;
  };
  link = {.kind = LinkKind::down,
          .plane = number,
          .lower = p.b.lower,
          .group = p.b.group,
          .upper = name,
          .parallel = lane(leaf_lanes_, p.touched, usable,
                           [&] { return at_switch(hash, 3, p.b.pod, name); })};
  put(link);
}

void Router::hash_route(const Path& p, std::uint64_t flow, std::vector<RouteLink>& out) const {
  const std::size_t begin = out.size();
  const std::int64_t all = std::ssize(planes_);
  std::int64_t planes = all;
  const bool whole = faults_.empty();
  const auto usable = [&](std::int64_t k) {
    return whole || plane_weight(p, planes_[static_cast<std::size_t>(k)]).plane > 0;
  };
  if (!whole) {
    planes = 0;
    for (std::int64_t k = 0; k < all; ++k) planes += usable(k) ? 1 : 0;
    CHECK_THAT(planes > 0, "faults that cut a pair off were refused");
  }
  // Software opens a queue pair on every port before a second on one; only switches hash. The
  // first port differs from flow to flow.
  const std::int64_t pairs = std::max(options_.paths_per_flow, planes * nics_);
  const double share = exact_share(1 / static_cast<double>(pairs));
  const std::int64_t start = hash_choice(hash_with(flow, ~std::uint64_t{0}), planes * nics_);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t port = (start + pair) % (planes * nics_);
    std::int64_t k = port / nics_;
    if (planes < all) {
      std::int64_t left = k;
      for (k = 0;; ++k)
        if (usable(k) && left-- == 0) break;
    }
    const PlaneClass& plane = planes_[static_cast<std::size_t>(k)];
    LinkName nic{.kind = LinkKind::nic_out,
                 .plane = static_cast<std::uint16_t>(plane.first),
                 .group = p.a.nic,
                 .parallel = static_cast<std::int32_t>(port % nics_)};
    add(out, begin, nic, share);
    const std::uint64_t hash = hash_with(hash_with(flow, static_cast<std::uint64_t>(pair)),
                                         static_cast<std::uint64_t>(plane.first));
    if (p.tier > 1)
      hash_switches(p, plane, hash, [&](const LinkName& link) { add(out, begin, link, share); });
    nic.kind = LinkKind::nic_in;
    nic.group = p.b.nic;
    add(out, begin, nic, share);
  }
}

void Router::hashed_trunks(std::int64_t from, std::int64_t to, std::int64_t labels,
                           std::vector<RouteLink>& out) const {
  CHECK_THAT(options_.routing == Routing::ecmp && options_.paths_per_flow == 1 && faults_.empty(),
             "hashed flows of one queue pair on a healthy fabric");
  const Path p = path(from, to);
  if (p.tier == 1) return;
  const std::int64_t ports = std::ssize(planes_) * nics_;
  const double share = exact_share(1 / static_cast<double>(ports));
  const std::uint64_t ends = flow_hash(options_.seed, from, to);
  for (std::int64_t label = 0; label < labels; ++label) {
    const std::uint64_t flow = hash_with(ends, static_cast<std::uint64_t>(label));
    const std::int64_t start =
        ports == 1 ? 0 : hash_choice(hash_with(flow, ~std::uint64_t{0}), ports);
    for (std::int64_t pair = 0; pair < ports; ++pair) {
      const std::int64_t port = start + pair < ports ? start + pair : start + pair - ports;
      const PlaneClass& plane = planes_[static_cast<std::size_t>(divided(port, nics_).first)];
      const std::uint64_t hash = hash_with(hash_with(flow, static_cast<std::uint64_t>(pair)),
                                           static_cast<std::uint64_t>(plane.first));
      // One queue pair takes no link twice.
      hash_switches(p, plane, hash,
                    [&](const LinkName& link) { out.push_back({.link = link, .share = share}); });
    }
    if (p.a.site == p.b.site) continue;
    out.push_back({.link = {.kind = LinkKind::site_out, .group = p.a.site}, .share = 1});
    out.push_back({.link = {.kind = LinkKind::site_in, .group = p.b.site}, .share = 1});
  }
}

}  // namespace orrery
