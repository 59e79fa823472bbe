// SPDX-License-Identifier: Apache-2.0
// Knows a number for every link that routes name: tables of links need no look-up by name.
#include <algorithm>

#include "sim/base/errors/check.h"
#include "topologies/routing/routing.h"

namespace orrery {
namespace {

// Digits of a number whose bases differ.
class Mixed {
 public:
  Mixed& digit(std::int64_t value, std::int64_t base) {
    CHECK_THAT(value >= 0 && value < base, "a link that the shape has");
    number_ = number_ * base + value;
    return *this;
  }
  std::int64_t number() const { return number_; }

 private:
  std::int64_t number_ = 0;
};

}  // namespace

Router::LinkCounts Router::link_counts() const {
  LinkCounts counts;
  counts.nics = 2 * shape_.accelerators * shape_.planes * nics_;
  if (shape_.tiers.size() > 1) {
    counts.groups = sites_ * groups_;
    counts.lower = shape_.tiers[0].switches;
    counts.upper = shape_.tiers[1].switches;
    counts.pods = sites_ * pods_;
    counts.over = dragonfly_ ? counts.pods : std::max<std::int64_t>(1, cores_);
    counts.leaves = 2 * counts.groups * counts.lower * counts.upper * leaf_lanes_ * shape_.planes;
    counts.spines = 2 * counts.pods * counts.upper * counts.over * core_lanes_ * shape_.planes;
  }
  counts.sites = 2 * sites_;
  return counts;
}

std::int64_t Router::links() const {
  const LinkCounts& counts = counts_;
  return counts.nics + counts.leaves + counts.spines + counts.sites;
}

std::vector<Router::Trunks> Router::trunks() const {
  const LinkCounts& c = counts_;
  const double share = exact_share(1 / static_cast<double>(shape_.planes * nics_));
  std::vector<Trunks> out;
  if (c.leaves > 0)
    out.push_back(
        {.begin = c.nics, .end = c.nics + c.leaves, .any = {.kind = LinkKind::up}, .share = share});
  if (c.spines > 0)
    out.push_back({.begin = c.nics + c.leaves,
                   .end = c.nics + c.leaves + c.spines,
                   .any = {.kind = LinkKind::up, .tier = 1},
                   .share = share});
  return out;
}

void Router::check_trunk(const LinkName& link) const {
  const LinkCounts& c = counts_;
  const auto within = [](std::int64_t value, std::int64_t base) {
    CHECK_THAT(value >= 0 && value < base, "a link that the shape has");
  };
  const bool leaf = link.tier == 0;
  within(link.group, leaf ? c.groups : c.pods);
  within(link.lower, leaf ? c.lower : c.upper);
  within(link.upper, leaf ? c.upper : c.over);
  within(link.parallel, leaf ? leaf_lanes_ : core_lanes_);
  within(link.plane, shape_.planes);
}

std::int64_t Router::number(const LinkName& link) const {
  const LinkCounts& counts = counts_;
  const auto places = [&](std::int64_t inwards) { return Mixed().digit(inwards, 2); };
  switch (link.kind) {
    case LinkKind::nic_out:
    case LinkKind::nic_in:
      return places(link.kind == LinkKind::nic_in)
          .digit(link.group, shape_.accelerators)
          .digit(link.plane, shape_.planes)
          .digit(link.parallel, nics_)
          .number();
    case LinkKind::up:
    case LinkKind::down:
      check_trunk(link);
      return counts.nics + trunk(link);
    case LinkKind::site_out:
    case LinkKind::site_in:
      return counts.nics + counts.leaves + counts.spines +
             places(link.kind == LinkKind::site_in).digit(link.group, sites_).number();
  }
  return 0;
}

}  // namespace orrery
