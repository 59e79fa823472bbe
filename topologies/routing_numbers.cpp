// SPDX-License-Identifier: Apache-2.0
// Knows a number for every link that routes name: tables of links need no look-up by name.
#include <algorithm>

#include "sim/base/check.h"
#include "topologies/routing.h"

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
    const std::int64_t spines = shape_.tiers[1].switches, pods = sites_ * pods_;
    counts.leaves =
        2 * sites_ * groups_ * shape_.tiers[0].switches * spines * leaf_lanes_ * shape_.planes;
    counts.spines = 2 * pods * spines * (dragonfly_ ? pods : std::max<std::int64_t>(1, cores_)) *
                    core_lanes_ * shape_.planes;
  }
  counts.sites = 2 * sites_;
  return counts;
}

std::int64_t Router::links() const {
  const LinkCounts& counts = counts_;
  return counts.nics + counts.leaves + counts.spines + counts.sites;
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
    case LinkKind::down: {
      const std::int64_t spines = shape_.tiers[1].switches, pods = sites_ * pods_;
      Mixed at = places(link.kind == LinkKind::down);
      if (link.tier == 0)
        return counts.nics + at.digit(link.group, sites_ * groups_)
                                 .digit(link.lower, shape_.tiers[0].switches)
                                 .digit(link.upper, spines)
                                 .digit(link.parallel, leaf_lanes_)
                                 .digit(link.plane, shape_.planes)
                                 .number();
      return counts.nics + counts.leaves +
             at.digit(link.group, pods)
                 .digit(link.lower, spines)
                 .digit(link.upper, dragonfly_ ? pods : std::max<std::int64_t>(1, cores_))
                 .digit(link.parallel, core_lanes_)
                 .digit(link.plane, shape_.planes)
                 .number();
    }
    case LinkKind::site_out:
    case LinkKind::site_in:
      return counts.nics + counts.leaves + counts.spines +
             places(link.kind == LinkKind::site_in).digit(link.group, sites_).number();
  }
  return 0;
}

}  // namespace orrery
