// SPDX-License-Identifier: Apache-2.0
// Knows how a router hashes each queue pair of a flow onto one path, switch by switch.
#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/errors/check.h"
#include "topologies/routing/hashing.h"
#include "topologies/routing/routing.h"

namespace orrery {
namespace {

// Switches hash on their own: tells their numbers apart.
std::uint64_t mixed_switch(std::uint64_t tier, std::int64_t group, std::int64_t lower) {
  return mix_bits(
      (static_cast<std::uint64_t>(group) << 24U ^ static_cast<std::uint64_t>(lower)) << 2U ^ tier);
}

// mix_bits() of the small numbers that labels, queue pairs and planes have.
constexpr std::size_t small = 64;
constexpr std::array<std::uint64_t, small> small_mixed = [] {
  std::array<std::uint64_t, small> out{};
  for (std::size_t i = 0; i < small; ++i) out[i] = mix_bits(i);
  return out;
}();
std::uint64_t hash_with_small(std::uint64_t hash, std::int64_t value) {
  const auto v = static_cast<std::size_t>(value);
  return hash_with_mixed(hash, v < small ? small_mixed[v] : mix_bits(v));
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

// Quotient and remainder of numbers below 2^31, whose division is the fast one; none where it is by
// one, which it mostly is.
std::pair<std::int32_t, std::int32_t> divided(std::int64_t number, std::int64_t by) {
  if (by == 1) return {static_cast<std::int32_t>(number), 0};
  const auto n = static_cast<std::uint32_t>(number), d = static_cast<std::uint32_t>(by);
  return {static_cast<std::int32_t>(n / d), static_cast<std::int32_t>(n % d)};
}

// One of the parallel links of a pair of switches; nothing is hashed where there is one.
template <class Usable, class Hash>
[[gnu::always_inline]] inline std::int32_t lane(std::int64_t lanes, bool touched,
                                                const Usable& usable, const Hash& hash) {
  if (touched) return choose(hash(), lanes, usable);
  return lanes == 1 ? 0 : static_cast<std::int32_t>(hash_choice(hash(), lanes));
}

}  // namespace

// Mixed once for each pod, and for each spine or core that its switches lead to.
void Router::mix_switches() {
  if (options_.routing != Routing::ecmp || shape_.tiers.size() < 2) return;
  pod_switches_ = std::max(counts_.upper, cores_);
  for (std::uint64_t tier = 1; tier <= 3; ++tier)
    for (std::int64_t pod = 0; pod < counts_.pods; ++pod)
      for (std::int64_t at = 0; at < pod_switches_; ++at)
        mixed_[tier - 1].push_back(mixed_switch(tier, pod, at));
}

inline std::uint64_t Router::at_spine(std::uint64_t hash, std::size_t tier, const End& e,
                                      std::int32_t at) const {
  return hash_with_mixed(hash,
                         mixed_[tier - 1][static_cast<std::size_t>(e.pod * pod_switches_ + at)]);
}

// Classes are single planes, spines, cores and lanes here, in order: indices are numbers.
inline Router::Hop Router::hash_leaf_link(const Path& p, const PlaneClass& plane,
                                          std::uint64_t hash) const {
  const std::uint64_t here = hash_with_mixed(hash, mixed_switch(0, p.a.group, p.a.lower));
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
inline Router::Hop Router::hash_core_link(const Path& p, const PlaneClass& plane,
                                          const SpineClass& spine, std::uint64_t hash) const {
  const std::uint64_t here = at_spine(hash, 1, p.a, p.spines + spine.first);
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

inline void Router::hash_above_leaf(const Path& p, const PlaneClass& plane, std::uint64_t hash,
                                    Hops& hops) const {
  const SpineClass& spine = spine_at(plane, hops.leaf.upper);
  const std::int32_t name = p.spines + spine.first;
  if (p.tier == 3) {
    hops.core = hash_core_link(p, plane, spine, hash);
    const CoreClass& core = core_at(spine, hops.core.upper);
    const auto usable = [&](std::int64_t lane) {
      return spine_link_left(p.b, plane, name, core.first, static_cast<std::int32_t>(lane)) > 0;
    };
    if (!dragonfly_)
      hops.core_down =
          lane(core_lanes_, p.touched, usable, [&] { return at_spine(hash, 2, p.b, core.first); });
  }
  const auto usable = [&](std::int64_t lane) {
    return leaf_link_left(p.b, plane, name, static_cast<std::int32_t>(lane)) > 0;
  };
  hops.leaf_down =
      lane(leaf_lanes_, p.touched, usable, [&] { return at_spine(hash, 3, p.b, name); });
}

template <class Put>
void Router::hash_switches(const Path& p, const PlaneClass& plane, std::uint64_t hash,
                           const Put& put) const {
  const auto number = static_cast<std::uint16_t>(plane.first);
  Hops hops{.leaf = hash_leaf_link(p, plane, hash)};
  hash_above_leaf(p, plane, hash, hops);
  const SpineClass& spine = spine_at(plane, hops.leaf.upper);
  LinkName link{.kind = LinkKind::up,
                .plane = number,
                .lower = p.a.lower,
                .group = p.a.group,
                .upper = p.spines + spine.first,
                .parallel = hops.leaf.lane};
  put(link);
  const std::int32_t name = link.upper;
  if (p.tier == 3) {
    link = {.kind = LinkKind::up,
            .tier = 1,
            .plane = number,
            .lower = name,
            .group = p.a.pod,
            .upper = core_name(core_at(spine, hops.core.upper), p.b),
            .parallel = hops.core.lane};
    put(link);
    if (!dragonfly_) {
      link.kind = LinkKind::down;
      link.group = p.b.pod;
      link.parallel = hops.core_down;
      put(link);
    }
  }
  put(LinkName{.kind = LinkKind::down,
               .plane = number,
               .lower = p.b.lower,
               .group = p.b.group,
               .upper = name,
               .parallel = hops.leaf_down});
}

void Router::route_pairs(std::int64_t from, std::int64_t to, std::uint64_t label,
                         Pairs& out) const {
  CHECK_THAT(options_.routing == Routing::ecmp, "only hashed flows have queue pairs");
  const Path p = path(from, to);
  const std::uint64_t flow = flow_hash(options_.seed, from, to, label);
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
  const std::int64_t ports = planes * nics_;
  const std::int64_t pairs = std::max(options_.paths_per_flow, ports);
  const double share = exact_share(1 / static_cast<double>(pairs));
  const std::int64_t start = hash_choice(hash_with(flow, ~std::uint64_t{0}), ports);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t port = (start + pair) % ports;
    std::int64_t k = port / nics_;
    if (planes < all) {
      std::int64_t left = k;
      for (k = 0;; ++k)
        if (usable(k) && left-- == 0) break;
    }
    const PlaneClass& plane = planes_[static_cast<std::size_t>(k)];
    // All queue pairs of a port share its links; the first one speaks for them.
    const double on_port =
        pair < ports ? share * static_cast<double>((pairs - pair + ports - 1) / ports) : 0;
    LinkName nic{.kind = LinkKind::nic_out,
                 .plane = static_cast<std::uint16_t>(plane.first),
                 .group = p.a.nic,
                 .parallel = static_cast<std::int32_t>(port % nics_)};
    if (on_port > 0) out.push_back({number(nic), {.link = nic, .share = on_port}});
    const std::uint64_t hash = hash_with(hash_with(flow, static_cast<std::uint64_t>(pair)),
                                         static_cast<std::uint64_t>(plane.first));
    if (p.tier > 1)
      hash_switches(p, plane, hash, [&](const LinkName& link) {
        out.push_back({counts_.nics + trunk(link), {.link = link, .share = share}});
      });
    nic.kind = LinkKind::nic_in;
    nic.group = p.b.nic;
    if (on_port > 0) out.push_back({number(nic), {.link = nic, .share = on_port}});
  }
}

int Router::count_hashed(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t end,
                         std::uint32_t* counts) const {
  CHECK_THAT(options_.routing == Routing::ecmp && options_.paths_per_flow == 1 && faults_.empty(),
             "hashed flows of one queue pair on a healthy fabric");
  const Path p = path(from, to);
  if (p.tier == 1) return 1;
  const std::int64_t ports = std::ssize(planes_) * nics_;
  // Numbers of the first spine's links in the first plane; those of others follow at equal steps.
  const auto first_trunk = [&](LinkKind kind, std::uint8_t tier, const End& e) {
    return counts + trunk({.kind = kind,
                           .tier = tier,
                           .lower = tier == 0 ? e.lower : p.spines,
                           .group = tier == 0 ? e.group : e.pod,
                           .upper = tier == 0 ? p.spines : 0});
  };
  std::uint32_t* const leaf_up = first_trunk(LinkKind::up, 0, p.a);
  std::uint32_t* const leaf_down = first_trunk(LinkKind::down, 0, p.b);
  std::uint32_t* const core_up = p.tier == 3 ? first_trunk(LinkKind::up, 1, p.a) : nullptr;
  std::uint32_t* const core_down = p.tier == 3 ? first_trunk(LinkKind::down, 1, p.b) : nullptr;
  const std::int64_t all = shape_.planes, over = counts_.over;
  const std::uint64_t ends = flow_hash(options_.seed, from, to);
  for (std::int64_t label = first; label < end; ++label) {
    const std::uint64_t flow = hash_with_small(ends, label);
    const std::int64_t start =
        ports == 1 ? 0 : hash_choice(hash_with(flow, ~std::uint64_t{0}), ports);
    for (std::int64_t pair = 0; pair < ports; ++pair) {
      const std::int64_t port = start + pair < ports ? start + pair : start + pair - ports;
      const std::int64_t at = divided(port, nics_).first;
      const PlaneClass& plane = planes_[static_cast<std::size_t>(at)];
      const std::uint64_t hash = hash_with_small(hash_with_small(flow, pair), plane.first);
      Hops hops{.leaf = hash_leaf_link(p, plane, hash)};
      hash_above_leaf(p, plane, hash, hops);
      const std::int64_t spine = hops.leaf.upper, core = dragonfly_ ? p.b.pod : hops.core.upper;
      ++leaf_up[(spine * leaf_lanes_ + hops.leaf.lane) * all + at];
      ++leaf_down[(spine * leaf_lanes_ + hops.leaf_down) * all + at];
      if (p.tier < 3) continue;
      const std::int64_t way = spine * over + core;
      // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): tier 3 has cores
      ++core_up[(way * core_lanes_ + hops.core.lane) * all + at];
      if (!dragonfly_) ++core_down[(way * core_lanes_ + hops.core_down) * all + at];
    }
  }
  return p.a.site == p.b.site ? p.tier : 4;
}

}  // namespace orrery
