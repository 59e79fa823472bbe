// SPDX-License-Identifier: Apache-2.0
// Knows whom a fault touches: pairs that it cuts off, positions that it tells from the others.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/errors/check.h"
#include "topologies/routing/routing.h"

namespace orrery {

// Enough for every pair to have a path, and quick: a plane in which no NIC and no leaf has failed,
// and a spine in it of which no fault takes a link away altogether.
bool Router::surely_connected() const {
  const auto cuts = [](const LinkFault& f, std::int32_t plane) {
    return f.left == 0 && (f.plane < 0 || f.plane == plane);
  };
  return std::any_of(planes_.begin(), planes_.end(), [&](const PlaneClass& plane) {
    if (plane.left == 0) return false;
    std::set<std::int32_t> cut;
    for (const LinkFault& f : nic_faults_)
      if (cuts(f, plane.first)) return false;
    for (const LinkFault& f : leaf_faults_)
      if (cuts(f, plane.first)) {
        if (f.spine < 0) return false;
        cut.insert(static_cast<std::int32_t>(f.spine % spines_));
      }
    for (const LinkFault& f : pod_faults_)
      if (cuts(f, plane.first)) cut.insert(static_cast<std::int32_t>(f.spine % spines_));
    return std::ssize(cut) < std::max<std::int64_t>(spines_, 1);
  });
}

// Accelerators such that, if any pair has no path, a pair of these has none: those with a faulted
// NIC, two under every faulted leaf, and for every rail two under each of two other leaves, and in
// two domains at least, in every pod that a fault touches and in one that none does.
std::vector<std::int64_t> Router::suspects() const {
  std::set<std::int64_t> found, leaves, pods;
  for (const LinkFault& f : nic_faults_) {
    found.insert(f.where);
    pods.insert(end_of(f.where).pod);
  }
  for (const LinkFault& f : pod_faults_) pods.insert(f.where);
  for (const LinkFault& f : leaf_faults_) {
    leaves.insert(f.where);
    const std::int64_t group = f.where / shape_.tiers[0].switches;
    pods.insert(group / groups_ * pods_ + pod_of_group(group % groups_));
  }
  for (std::int64_t pod = 0; pod < sites_ * pods_; ++pod)
    if (!pods.contains(pod)) {
      pods.insert(pod);
      break;
    }
  using Domains = std::set<std::int64_t>;
  struct Rail {
    std::map<std::int64_t, Domains> leaves;
    Domains domains;
  };
  std::map<std::int64_t, Domains> under;  // faulted leaf -> domains found there
  std::map<std::pair<std::int64_t, std::int32_t>, Rail> rails;
  for (std::int64_t g = 0; g < shape_.accelerators; ++g) {
    const End e = end_of(g);
    if (e.nic != g || !e.at_nic.empty()) continue;
    Domains* domains = nullptr;
    if (leaves.contains(e.leaf)) {
      domains = &under[e.leaf];
    } else if (pods.contains(e.pod)) {
      Rail& rail = rails[{e.pod, e.rail}];
      // A domain may reach several leaves of a rail: then its own are not enough.
      const bool another = rail.domains.size() == 1 && !rail.domains.contains(g / domain_);
      if (rail.leaves.size() < 2 || rail.leaves.contains(e.leaf) || another)
        domains = &rail.leaves[e.leaf];
      if (domains) rail.domains.insert(g / domain_);
    }
    if (domains && domains->size() < 2 && domains->insert(g / domain_).second) found.insert(g);
  }
  return {found.begin(), found.end()};
}

bool Router::connected(std::int64_t a, std::int64_t b) const {
  const Path p = path(a, b);
  return std::any_of(planes_.begin(), planes_.end(),
                     [&](const PlaneClass& plane) { return plane_weight(p, plane).plane > 0; });
}

void Router::check_paths() const {
  const std::vector<std::int64_t> ends = suspects();
  for (const std::int64_t a : ends)
    for (const std::int64_t b : ends) {
      if (a / domain_ == b / domain_ || !rails_meet(end_of(a), end_of(b)) || connected(a, b))
        continue;
      // The first fault with which the pair is cut off is to blame.
      Router fewer = *this;
      while (!fewer.faults_.empty() && !fewer.connected(a, b)) {
        fewer.faults_.pop_back();
        fewer.take_faults();
      }
      throw Error({.file = fabric_.name,
                   .path = fmt::format("faults[{}]", fewer.faults_.size()),
                   .found = fmt::format("no path from accelerator {} to {} in any plane", a, b),
                   .expected = "faults that leave every pair a path"});
    }
}

// What tells positions apart, besides their own numbers: how many share their NIC and their leaf,
// and which faults name either. Where a leaf's block of NICs ends inside a domain, positions see
// different leaves in different domains: each is then a class of its own, as under ecmp, whose hash
// tells all flows apart.
std::vector<int> Router::position_classes(std::int64_t used) const {
  CHECK_THAT(used >= 1 && used <= std::ssize(position_nic_), "used positions lie in a domain");
  const ClosTier& leaf = shape_.tiers[0];
  std::vector<int> classes;
  const bool one_group = shape_.tiers.size() == 1;
  const bool aligned =
      (one_group || leaf.reach % domain_ == 0) && (sites_ == 1 || site_size_ % domain_ == 0) &&
      (leaves_per_rail_ == 1 || one_group || leaf.down % (nics_of_rail_ * nics_) == 0);
  if (options_.routing == Routing::ecmp || !aligned) {
    for (int p = 0; p < used; ++p) classes.push_back(p);
    return classes;
  }
  std::map<std::int32_t, std::int64_t> on_nic, on_rail;
  for (std::int64_t p = 0; p < used; ++p) {
    ++on_nic[position_nic_[static_cast<std::size_t>(p)]];
    ++on_rail[position_rail_[static_cast<std::size_t>(p)]];
  }
  std::map<std::vector<std::int64_t>, int> seen;
  for (std::int64_t p = 0; p < used; ++p) {
    const std::int32_t nic = position_nic_[static_cast<std::size_t>(p)];
    const std::int32_t rail = position_rail_[static_cast<std::size_t>(p)];
    std::vector<std::int64_t> signature = {on_nic[nic], on_rail[rail]};
    for (std::size_t i = 0; i < faults_.size(); ++i) {
      const NetworkFault& f = faults_[i];
      const bool on_leaf = f.kind == FaultKind::leaf || f.kind == FaultKind::leaf_spine;
      bool mine = false;
      if (f.kind == FaultKind::nic) mine = nic_of(f.accelerator) % domain_ == nic;
      if (on_leaf) mine = f.leaf % leaf.switches / leaves_per_rail_ == rail;
      if (f.kind == FaultKind::spine || f.kind == FaultKind::spine_core)
        mine = f.spine / spines_ == first_spine(rail) / spines_;
      if (mine) signature.push_back(static_cast<std::int64_t>(i));
    }
    classes.push_back(seen.emplace(signature, static_cast<int>(seen.size())).first->second);
  }
  return classes;
}

}  // namespace orrery
