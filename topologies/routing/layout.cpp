// SPDX-License-Identifier: Apache-2.0
// Knows how a router numbers a fabric's switches, and which links its faults tell from the others.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors/check.h"
#include "sim/base/sorting.h"
#include "sim/base/whole.h"
#include "topologies/routing/routing.h"

namespace orrery {
namespace {

std::int32_t narrow(std::int64_t value) {
  CHECK_THAT(value >= INT32_MIN && value <= INT32_MAX, "switches are counted in 32 bits");
  return static_cast<std::int32_t>(value);
}

}  // namespace

RoutingOptions routing_of(const Fabric& fabric) {
  return {.routing = fabric.scale_out.routing, .paths_per_flow = fabric.scale_out.paths_per_flow};
}

Router::Router(const Fabric& fabric, std::int64_t accelerators, const RoutingOptions& options,
               std::span<const NetworkFault> faults)
    : Router(fabric, clos_shape(fabric, accelerators), options, faults) {}

Router::Router(const Fabric& fabric, ClosShape shape, const RoutingOptions& options,
               std::span<const NetworkFault> faults)
    : fabric_(fabric),
      shape_(std::move(shape)),
      options_(options),
      faults_(faults.begin(), faults.end()) {
  // Here the links between groups are a tier of their own, though it has no switches.
  if (shape_.direct && shape_.tiers.size() == 2 && shape_.tiers[1].up > 0)
    shape_.tiers.push_back({.reach = shape_.accelerators, .groups = 1});
  if (shape_.tiers.empty() || shape_.tiers.size() > 3)
    throw Error({.file = fabric.name,
                 .path = "scale_out.tiers",
                 .found = fmt::format("{} tiers of switches", shape_.tiers.size()),
                 .expected = "one to three, for flows to be routed"});
  if (options_.routing == Routing::ecmp) options_.bundled = false;
  CHECK_THAT(options_.paths_per_flow >= 1, "a flow has a queue pair");
  lay_out();
  lay_out_positions();
  take_faults();
  if (!faults_.empty() && !surely_connected()) check_paths();
}

void Router::take_faults() {
  for (std::vector<LinkFault>* list : {&nic_faults_, &leaf_faults_, &pod_faults_}) list->clear();
  for (std::size_t i = 0; i < faults_.size(); ++i) note(i);
  for (std::vector<LinkFault>* list : {&nic_faults_, &leaf_faults_, &pod_faults_})
    sort_stably(*list, [](const LinkFault& a, const LinkFault& b) { return a.where < b.where; });
  make_classes();
}

void Router::lay_out() {
  const ScaleOut& out = fabric_.scale_out;
  const std::vector<ClosTier>& tiers = shape_.tiers;
  const std::int64_t all = shape_.accelerators;
  dragonfly_ = out.kind == ScaleOutKind::dragonfly_plus;
  const bool one_rail = out.kind == ScaleOutKind::fat_tree || dragonfly_;
  rails_ = one_rail ? 1 : shape_.rails;
  leaves_per_rail_ = std::max<std::int64_t>(1, tiers[0].switches / rails_);
  domain_ = fabric_.scale_up.domain;
  site_size_ = shape_.sites ? fabric_.sites.accelerators : std::max<std::int64_t>(all, 1);
  sites_ = ceil_div(all, site_size_);
  groups_ = tiers.size() == 1 ? 1 : ceil_div(site_size_, tiers[0].reach);
  pods_ = tiers.size() < 3 ? 1 : pod_of_group(groups_ - 1) + 1;
  if (tiers.size() > 1) {
    const ClosTier& leaf = tiers[0];
    leaf_lanes_ = leaf.parallel;
    spines_ = leaf.up / leaf.parallel;
    CHECK_THAT(spines_ >= 1 && leaf.up == spines_ * leaf.parallel,
               "a leaf has equally many links to every spine");
    CHECK_THAT(out.kind == ScaleOutKind::rail_only ? spines_ <= tiers[1].switches
                                                   : spines_ == tiers[1].switches,
               "a leaf reaches every spine of its pod, or of its rail");
  }
  double global = 1;
  if (dragonfly_ && tiers.size() == 3) {
    // The links between two groups are spread evenly over the spines of each; where they are too
    // few for one each, every spine has a part of one.
    const std::int64_t spines = tiers[1].switches;
    core_lanes_ = std::max<std::int64_t>(1, tiers[1].parallel / spines);
    cores_ = 1;
    global = static_cast<double>(tiers[1].parallel) / static_cast<double>(spines * core_lanes_);
  } else if (tiers.size() == 3) {
    core_lanes_ = tiers[1].parallel;
    cores_ = tiers[1].up / core_lanes_;
    CHECK_THAT(cores_ >= 1 && tiers[1].up == cores_ * core_lanes_,
               "a spine has equally many links to every core");
  }
  const double ports = std::max(1.0, shape_.ports_per_accelerator);
  nics_ = static_cast<std::int64_t>(ports + 1e-9);
  const auto rate = [&](std::size_t tier) {
    return link_below(out, std::min(tier, out.tiers.size())).si() * out.efficiency.get();
  };
  nic_rate_ = rate(0) * (ports / static_cast<double>(nics_));
  leaf_rate_ = rate(1);
  spine_rate_ = rate(2) * global;
  counts_ = link_counts();
  mix_switches();
}

void Router::lay_out_positions() {
  const std::int64_t positions = std::min(domain_, std::max<std::int64_t>(1, shape_.accelerators));
  const double ports = std::min(1.0, shape_.ports_per_accelerator);
  const auto nic = [&](std::int64_t p) {  // the small part keeps 3 * (1 / 3) on the next NIC
    return static_cast<std::int64_t>(static_cast<double>(p) * ports + 1e-9);
  };
  nics_of_rail_ = ceil_div(nic(domain_ - 1) + 1, rails_);
  std::int64_t first = 0;
  for (std::int64_t p = 0; p < positions; ++p) {
    if (nic(p) != nic(first)) first = p;
    position_nic_.push_back(narrow(first));
    position_rail_.push_back(narrow(nic(p) % rails_));
    position_in_rail_.push_back(narrow(nic(p) / rails_));
  }
}

// A leaf group lies in the pod of its first accelerator. Groups are counted inside one site here.
std::int64_t Router::pod_of_group(std::int64_t group) const {
  return shape_.tiers.size() < 3 ? 0 : group * shape_.tiers[0].reach / shape_.tiers[1].reach;
}

void Router::bad_fault(std::size_t i, const char* what, std::int64_t found,
                       std::int64_t below) const {
  const std::string expected =
      below > 0 ? fmt::format("0 to {}", below - 1) : "no such fault: the fabric has no such tier";
  throw Error({.file = fabric_.name,
               .path = fmt::format("faults[{}]", i),
               .found = fmt::format("{} {}", what, found),
               .expected = expected});
}

void Router::note(std::size_t i) {
  const NetworkFault& f = faults_[i];
  const auto in = [&](const char* what, std::int64_t value, std::int64_t below,
                      std::int64_t least = 0) {
    if (value < least || value >= below) bad_fault(i, what, value, below);
    return narrow(value);
  };
  if (!(f.remaining >= 0 && f.remaining <= 1))
    throw Error({.file = fabric_.name,
                 .path = fmt::format("faults[{}]", i),
                 .found = fmt::format("remaining {}", f.remaining),
                 .expected = "a share of the rate, 0 to 1"});
  const std::size_t tiers = shape_.tiers.size();
  const std::int64_t all_pods = sites_ * pods_;
  const std::int64_t all_leaves = sites_ * groups_ * shape_.tiers[0].switches;
  const std::int64_t spines = tiers > 1 ? shape_.tiers[1].switches : 0;
  LinkFault fault{.left = exact_share(f.remaining)};
  fault.plane =
      in("plane", f.plane, shape_.planes, f.kind == FaultKind::nic ? std::int64_t{-1} : 0);
  switch (f.kind) {
    case FaultKind::plane:
      return;  // make_classes() reads it
    case FaultKind::nic:
      if (f.accelerator < 0 || f.accelerator >= shape_.accelerators)
        bad_fault(i, "accelerator", f.accelerator, shape_.accelerators);
      fault.where = nic_of(f.accelerator);
      nic_faults_.push_back(fault);
      return;
    case FaultKind::leaf:
    case FaultKind::leaf_spine:
      fault.where = in("leaf", f.leaf, all_leaves);
      if (f.kind == FaultKind::leaf_spine) {
        fault.spine = in("spine", f.spine, spines);
        fault.lane = in("parallel link", f.parallel, leaf_lanes_, -1);
        const std::int64_t rail = f.leaf % shape_.tiers[0].switches / leaves_per_rail_;
        if (fault.spine / spines_ != first_spine(narrow(rail)) / spines_)
          bad_fault(i, "spine of another rail:", f.spine, spines);
      }
      leaf_faults_.push_back(fault);
      return;
    case FaultKind::spine:
    case FaultKind::spine_core:
      fault.where = in("pod", f.pod, all_pods);
      fault.spine = in("spine", f.spine, spines);
      fault.core = whole_switch;
      if (f.kind == FaultKind::spine_core) {
        fault.core = in("core", f.core, tiers < 3 ? 0 : dragonfly_ ? all_pods : cores_);
        fault.lane = in("parallel link", f.parallel, core_lanes_, -1);
      }
      pod_faults_.push_back(fault);
      if (dragonfly_ && fault.core >= 0) {  // the same cable, seen from its other end
        if (f.core == f.pod) bad_fault(i, "the spine's own group", f.core, all_pods);
        fault.where = f.core;
        fault.core = narrow(f.pod);
        pod_faults_.push_back(fault);
      }
      return;
  }
}

// Named members are classes of their own, the others one class. Sorted by the lowest member.
std::vector<Router::Lanes> Router::split(std::int64_t total,
                                         std::vector<std::int64_t> named) const {
  std::vector<Lanes> classes;
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  std::ptrdiff_t rest = -1;
  auto next = named.begin();
  for (std::int64_t i = 0; i < total; ++i) {
    const bool alone = next != named.end() && *next == i;
    if (alone) ++next;
    if (!alone && options_.bundled && rest >= 0) {
      ++classes[static_cast<std::size_t>(rest)].count;
      continue;
    }
    if (!alone) rest = std::ssize(classes);
    classes.push_back({.first = narrow(i)});
  }
  return classes;
}

Router::Range Router::make_lanes(std::int64_t total, const std::vector<std::int64_t>& named) {
  const std::int32_t begin = narrow(std::ssize(lanes_));
  for (const Lanes& lanes : split(total, named)) lanes_.push_back(lanes);
  return {.begin = begin, .end = narrow(std::ssize(lanes_))};
}

Router::Range Router::make_cores(std::int32_t plane, std::int32_t spine) {
  std::vector<LinkFault> here;
  std::vector<std::int64_t> named;
  for (const LinkFault& f : pod_faults_)
    if (f.plane == plane && f.core >= 0 && f.spine % spines_ == spine) here.push_back(f);
  if (!dragonfly_)
    for (const LinkFault& f : here) named.push_back(f.core);
  std::vector<CoreClass> cores;
  for (const Lanes& core : split(cores_, named)) {
    named.clear();
    for (const LinkFault& f : here)
      if (f.lane >= 0 && (dragonfly_ || f.core == core.first)) named.push_back(f.lane);
    cores.push_back(
        {.first = core.first, .count = core.count, .lanes = make_lanes(core_lanes_, named)});
  }
  const std::int32_t begin = narrow(std::ssize(core_classes_));
  core_classes_.insert(core_classes_.end(), cores.begin(), cores.end());
  return {.begin = begin, .end = narrow(std::ssize(core_classes_))};
}

// A spine that any fault names is a class of its own in every pod and for every rail: a bundle's
// name must mean the same links whichever flow crosses it.
Router::Range Router::make_spines(std::int32_t plane) {
  std::vector<std::int64_t> named;
  for (const std::vector<LinkFault>* list : {&leaf_faults_, &pod_faults_})
    for (const LinkFault& f : *list)
      if (f.plane == plane && f.spine >= 0) named.push_back(f.spine % spines_);
  std::vector<SpineClass> spines;
  for (const Lanes& spine : split(spines_, named)) {
    named.clear();
    for (const LinkFault& f : leaf_faults_)
      if (f.plane == plane && f.spine >= 0 && f.spine % spines_ == spine.first && f.lane >= 0)
        named.push_back(f.lane);
    spines.push_back({.first = spine.first,
                      .count = spine.count,
                      .lanes = make_lanes(leaf_lanes_, named),
                      .cores = make_cores(plane, spine.first)});
  }
  const std::int32_t begin = narrow(std::ssize(spine_classes_));
  spine_classes_.insert(spine_classes_.end(), spines.begin(), spines.end());
  return {.begin = begin, .end = narrow(std::ssize(spine_classes_))};
}

void Router::make_classes() {
  planes_.clear();
  spine_classes_.clear();
  core_classes_.clear();
  lanes_.clear();
  nic_lanes_ = split(nics_, {});
  std::vector<std::int64_t> named;
  for (const NetworkFault& f : faults_)
    if (f.plane >= 0) named.push_back(f.plane);
  for (const Lanes& plane : split(shape_.planes, named)) {
    PlaneClass made{.first = plane.first, .count = plane.count};
    for (const NetworkFault& f : faults_)
      if (f.kind == FaultKind::plane && f.plane == plane.first)
        made.left = std::min(made.left, exact_share(f.remaining));
    made.spines = make_spines(plane.first);
    planes_.push_back(made);
  }
}

}  // namespace orrery
