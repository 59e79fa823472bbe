// SPDX-License-Identifier: Apache-2.0
// Knows how a flow climbs only as high as it must, and spreads over what is left of each path.
#include "topologies/routing/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "topologies/routing/hashing.h"

namespace orrery {
namespace {

template <class Fault>
std::span<const Fault> at(const std::vector<Fault>& faults, std::int64_t where) {
  if (faults.empty()) return {};
  const auto less = [](const Fault& f, std::int64_t w) { return f.where < w; };
  const auto first = std::lower_bound(faults.begin(), faults.end(), where, less);
  auto last = first;
  while (last != faults.end() && last->where == where) ++last;
  return {first, last};
}

template <class Class, class Range>
std::span<const Class> part(const std::vector<Class>& all, const Range& range) {
  return std::span(all).subspan(static_cast<std::size_t>(range.begin),
                                static_cast<std::size_t>(range.end - range.begin));
}

constexpr double count(std::int64_t n) { return static_cast<double>(n); }

// Queue pairs that meet on a link add up there.
void add_up(Pairs& pairs, std::vector<RouteLink>& out) {
  for (auto pair = pairs.begin(); pair != pairs.end(); ++pair) {
    const auto first = std::find_if(pairs.begin(), pair, [&](const NumberedLink& other) {
      return other.number == pair->number;
    });
    if (first != pair) first->route.share += pair->route.share;
  }
  for (auto pair = pairs.begin(); pair != pairs.end(); ++pair)
    if (std::none_of(pairs.begin(), pair,
                     [&](const NumberedLink& other) { return other.number == pair->number; }))
      out.push_back(pair->route);
}

}  // namespace

double exact_share(double share) {
  return static_cast<double>(std::llround(share * 0x1p30)) * 0x1p-30;
}

std::int64_t Router::nic_of(std::int64_t accelerator) const {
  const std::int64_t position = accelerator % domain_;
  return accelerator - position + position_nic_[static_cast<std::size_t>(position)];
}

std::int64_t Router::leaf_of(std::int64_t accelerator) const { return end_of(accelerator).leaf; }

Router::End Router::end_of(std::int64_t accelerator) const {
  const std::int64_t position = accelerator % domain_;
  const auto at_position = static_cast<std::size_t>(position);
  End e;
  e.nic = accelerator - position + position_nic_[at_position];
  e.rail = position_rail_[at_position];
  e.site = sites_ > 1 ? accelerator / site_size_ : 0;
  const std::int64_t inside = accelerator - e.site * site_size_;
  const std::int64_t reach = shape_.tiers[0].reach;
  const std::int64_t group = groups_ > 1 ? inside / reach : 0;
  std::int64_t lower = e.rail;
  if (leaves_per_rail_ > 1) {
    const std::int64_t nic =
        (inside - group * reach) / domain_ * nics_of_rail_ + position_in_rail_[at_position];
    const std::int64_t leaf = nic * nics_ / shape_.tiers[0].down;
    lower = e.rail * leaves_per_rail_ + std::min(leaf, leaves_per_rail_ - 1);
  }
  e.lower = static_cast<std::int32_t>(lower);
  e.group = e.site * groups_ + group;
  e.leaf = e.group * shape_.tiers[0].switches + e.lower;
  e.pod = e.site * pods_ + (pods_ > 1 ? pod_of_group(group) : 0);
  if (faults_.empty()) return e;
  e.at_nic = at(nic_faults_, e.nic);
  e.at_leaf = at(leaf_faults_, e.leaf);
  e.at_pod = at(pod_faults_, e.pod);
  return e;
}

int Router::tier_of(const End& a, const End& b) const {
  const int tiers = static_cast<int>(shape_.tiers.size());
  if (a.site != b.site) return dragonfly_ ? std::min(tiers, 2) : tiers;
  if (a.leaf == b.leaf || tiers == 1) return 1;
  return a.pod == b.pod ? 2 : tiers;
}

int Router::tier_between(std::int64_t from, std::int64_t to) const {
  return tier_of(end_of(from), end_of(to));
}

std::int64_t Router::site_of(std::int64_t accelerator) const { return end_of(accelerator).site; }

bool Router::rails_meet(const End& a, const End& b) const {
  return a.rail == b.rail ||
         (shape_.tiers.size() > 1 && fabric_.scale_out.kind != ScaleOutKind::rail_only);
}

// Rails that have spines of their own have them one after the other.
std::int32_t Router::first_spine(std::int32_t rail) const {
  const std::int64_t rails = shape_.tiers[1].switches / spines_;
  return rails == 1 ? 0 : static_cast<std::int32_t>(rail % rails * spines_);
}

Router::Path Router::path(std::int64_t from, std::int64_t to) const {
  Path p{.a = end_of(from), .b = end_of(to)};
  if (!rails_meet(p.a, p.b))
    throw Error({.file = fabric_.name,
                 .path = "scale_out.kind",
                 .found = fmt::format("a flow from rail {} to rail {} (accelerators {} and {})",
                                      p.a.rail, p.b.rail, from, to),
                 .expected = "one rail: rails do not meet in this fabric"});
  p.tier = tier_of(p.a, p.b);
  if (p.tier > 1) p.spines = first_spine(p.a.rail);
  p.touched = p.tier > 1 && !(p.a.at_leaf.empty() && p.b.at_leaf.empty() && p.a.at_pod.empty() &&
                              p.b.at_pod.empty());
  return p;
}

double Router::nic_left(const End& e, const PlaneClass& plane) const {
  double left = plane.left;
  for (const LinkFault& f : e.at_nic)
    if (f.plane < 0 || f.plane == plane.first) left = std::min(left, f.left);
  for (const LinkFault& f : e.at_leaf)
    if (f.plane == plane.first && f.spine < 0) left = std::min(left, f.left);
  return left;
}

double Router::leaf_link_left(const End& e, const PlaneClass& plane, std::int32_t spine,
                              std::int32_t lane) const {
  double left = plane.left;
  for (const LinkFault& f : e.at_leaf)
    if (f.plane == plane.first && (f.spine < 0 || f.spine == spine) &&
        (f.lane < 0 || f.lane == lane))
      left = std::min(left, f.left);
  for (const LinkFault& f : e.at_pod)
    if (f.plane == plane.first && f.spine == spine && f.core == whole_switch)
      left = std::min(left, f.left);
  return left;
}

double Router::spine_link_left(const End& e, const PlaneClass& plane, std::int32_t spine,
                               std::int32_t core, std::int32_t lane) const {
  double left = plane.left;
  for (const LinkFault& f : e.at_pod)
    if (f.plane == plane.first && f.spine == spine &&
        (f.core == whole_switch || (f.core == core && (f.lane < 0 || f.lane == lane))))
      left = std::min(left, f.left);
  return left;
}

// Sums of what is left are multiples of 2^-30 and far below 2^23, so that they do not depend on
// how links are bundled, and equal shares of them are equal to the bit.
double Router::leaf_lanes(const End& e, const Path& p, const PlaneClass& plane,
                          const SpineClass& spine) const {
  double left = 0;
  for (const Lanes& lane : part(lanes_, spine.lanes))
    left += count(lane.count) * leaf_link_left(e, plane, p.spines + spine.first, lane.first);
  return left;
}

double Router::core_lanes(const Path& p, bool upwards, const PlaneClass& plane,
                          const SpineClass& spine, const CoreClass& core) const {
  const End& e = upwards ? p.a : p.b;
  const std::int32_t name = core_name(core, upwards ? p.b : p.a);
  double left = 0;
  for (const Lanes& lane : part(lanes_, core.lanes))
    left += count(lane.count) * spine_link_left(e, plane, p.spines + spine.first, name, lane.first);
  return left;
}

double Router::core_weight(const Path& p, const PlaneClass& plane, const SpineClass& spine,
                           const CoreClass& core) const {
  if (!p.touched) return plane.left;
  return exact_share(
      std::min(core_lanes(p, true, plane, spine, core), core_lanes(p, false, plane, spine, core)) /
      count(core_lanes_));
}

double Router::cores_weight(const Path& p, const PlaneClass& plane, const SpineClass& spine) const {
  double sum = 0;
  for (const CoreClass& core : part(core_classes_, spine.cores))
    sum += count(core.count) * core_weight(p, plane, spine, core);
  return sum;
}

double Router::spine_weight(const Path& p, const PlaneClass& plane, const SpineClass& spine) const {
  if (!p.touched) return plane.left;
  const double leaf = std::min(leaf_lanes(p.a, p, plane, spine), leaf_lanes(p.b, p, plane, spine));
  const double weight = exact_share(leaf / count(leaf_lanes_));
  if (p.tier < 3 || weight == 0) return weight;
  return std::min(weight, exact_share(cores_weight(p, plane, spine) / count(cores_)));
}

Router::PlaneShares Router::plane_weight(const Path& p, const PlaneClass& plane) const {
  const double nic = std::min(nic_left(p.a, plane), nic_left(p.b, plane));
  if (p.tier == 1) return {.plane = nic, .spines = 0};
  double sum = 0;
  if (!p.touched) {
    sum = count(spines_) * plane.left;
  } else {
    for (const SpineClass& spine : part(spine_classes_, plane.spines))
      sum += count(spine.count) * spine_weight(p, plane, spine);
  }
  return {.plane = std::min(nic, exact_share(sum / count(spines_))), .spines = sum};
}

void Router::nic_links(LinkKind kind, const End& e, const PlaneClass& plane, double share,
                       std::vector<RouteLink>& out) const {
  for (const Lanes& nic : nic_lanes_)
    out.push_back({.link = {.kind = kind,
                            .plane = static_cast<std::uint16_t>(plane.first),
                            .group = e.nic,
                            .parallel = nic.first},
                   .share = exact_share(share / count(nics_))});
}

void Router::spray_cores(const Path& p, const PlaneClass& plane, const SpineClass& spine,
                         double share, std::vector<RouteLink>& out) const {
  const double all = cores_weight(p, plane, spine);
  for (const CoreClass& core : part(core_classes_, spine.cores)) {
    const double of_core = share * (core_weight(p, plane, spine, core) / all);
    if (of_core == 0) continue;
    for (const bool upwards : {true, false}) {
      if (!upwards && dragonfly_) continue;  // the way up is the whole way to the other group
      const End& e = upwards ? p.a : p.b;
      const std::int32_t name = core_name(core, upwards ? p.b : p.a);
      const double left =
          p.touched ? core_lanes(p, upwards, plane, spine, core) : count(core_lanes_) * plane.left;
      for (const Lanes& lane : part(lanes_, core.lanes)) {
        const double of_lane =
            p.touched ? spine_link_left(e, plane, p.spines + spine.first, name, lane.first)
                      : plane.left;
        if (of_lane == 0) continue;
        out.push_back({.link = {.kind = upwards ? LinkKind::up : LinkKind::down,
                                .tier = 1,
                                .plane = static_cast<std::uint16_t>(plane.first),
                                .lower = p.spines + spine.first,
                                .group = e.pod,
                                .upper = name,
                                .parallel = lane.first},
                       .share = exact_share(of_core * (of_lane / left))});
      }
    }
  }
}

void Router::spray_spine(const Path& p, const PlaneClass& plane, const SpineClass& spine,
                         double share, std::vector<RouteLink>& out) const {
  for (const bool upwards : {true, false}) {
    const End& e = upwards ? p.a : p.b;
    const double left =
        p.touched ? leaf_lanes(e, p, plane, spine) : count(leaf_lanes_) * plane.left;
    for (const Lanes& lane : part(lanes_, spine.lanes)) {
      const double of_lane =
          p.touched ? leaf_link_left(e, plane, p.spines + spine.first, lane.first) : plane.left;
      if (of_lane == 0) continue;
      out.push_back({.link = {.kind = upwards ? LinkKind::up : LinkKind::down,
                              .tier = 0,
                              .plane = static_cast<std::uint16_t>(plane.first),
                              .lower = e.lower,
                              .group = e.group,
                              .upper = p.spines + spine.first,
                              .parallel = lane.first},
                     .share = exact_share(share * (of_lane / left))});
    }
    if (upwards && p.tier == 3) spray_cores(p, plane, spine, share, out);
  }
}

void Router::spray_plane(const Path& p, const PlaneClass& plane, double share, double spines,
                         std::vector<RouteLink>& out) const {
  nic_links(LinkKind::nic_out, p.a, plane, share, out);
  if (p.tier > 1) {
    for (const SpineClass& spine : part(spine_classes_, plane.spines)) {
      const double weight = spine_weight(p, plane, spine);
      if (weight > 0) spray_spine(p, plane, spine, share * (weight / spines), out);
    }
  }
  nic_links(LinkKind::nic_in, p.b, plane, share, out);
}

void Router::route(std::int64_t from, std::int64_t to, std::uint64_t label,
                   std::vector<RouteLink>& out) const {
  CHECK_THAT(from >= 0 && to >= 0 && from < shape_.accelerators && to < shape_.accelerators,
             "a flow's ends are in the fabric");
  CHECK_THAT(from / domain_ != to / domain_, "a flow inside a domain crosses no NIC");
  const Path p = path(from, to);
  if (options_.routing == Routing::ecmp) {
    Pairs pairs;
    route_pairs(from, to, label, pairs);
    add_up(pairs, out);
  } else {
    double all = 0;
    for (const PlaneClass& plane : planes_)
      all += count(plane.count) * plane_weight(p, plane).plane;
    for (const PlaneClass& plane : planes_) {
      const PlaneShares shares = plane_weight(p, plane);
      if (shares.plane > 0) spray_plane(p, plane, shares.plane / all, shares.spines, out);
    }
  }
  if (p.a.site != p.b.site) {
    out.push_back({.link = {.kind = LinkKind::site_out, .group = p.a.site}, .share = 1});
    out.push_back({.link = {.kind = LinkKind::site_in, .group = p.b.site}, .share = 1});
  }
}

BundleSize Router::size(const LinkName& link) const {
  const bool nic = link.kind == LinkKind::nic_out || link.kind == LinkKind::nic_in;
  if (link.kind == LinkKind::site_out || link.kind == LinkKind::site_in)
    return {.capacity = fabric_.sites.bandwidth.get().si() * fabric_.sites.efficiency.get()};
  if (faults_.empty() && !options_.bundled)
    return {.capacity = nic ? nic_rate_ : link.tier == 0 ? leaf_rate_ : spine_rate_};
  const auto class_of = [](const auto& classes, std::int32_t name) {
    const auto found = std::partition_point(classes.begin(), classes.end(),
                                            [&](const auto& c) { return c.first < name; });
    CHECK_THAT(found != classes.end() && found->first == name, "a link that no route names");
    return *found;
  };
  const PlaneClass plane = class_of(std::span(planes_), link.plane);
  if (nic) {
    const Lanes lanes = class_of(std::span(nic_lanes_), link.parallel);
    const double left = nic_left(end_of(link.group), plane);
    return {.capacity = nic_rate_ * left, .links = std::int64_t{plane.count} * lanes.count};
  }
  const auto in_set =
      static_cast<std::int32_t>((link.tier == 0 ? link.upper : link.lower) % spines_);
  const SpineClass spine = class_of(part(spine_classes_, plane.spines), in_set);
  const std::int64_t spines = std::int64_t{plane.count} * spine.count;
  End e{.group = link.group, .leaf = link.group * shape_.tiers[0].switches + link.lower};
  if (link.tier == 0) {
    const Lanes lane = class_of(part(lanes_, spine.lanes), link.parallel);
    e.pod = link.group / groups_ * pods_ + pod_of_group(link.group % groups_);
    e.at_leaf = at(leaf_faults_, e.leaf);
    e.at_pod = at(pod_faults_, e.pod);
    return {.capacity = leaf_rate_ * leaf_link_left(e, plane, link.upper, link.parallel),
            .links = spines * lane.count};
  }
  const CoreClass core = class_of(part(core_classes_, spine.cores), dragonfly_ ? 0 : link.upper);
  const Lanes lane = class_of(part(lanes_, core.lanes), link.parallel);
  e.at_pod = at(pod_faults_, link.group);
  return {
      .capacity = spine_rate_ * spine_link_left(e, plane, link.lower, link.upper, link.parallel),
      .links = spines * core.count * lane.count};
}

}  // namespace orrery
