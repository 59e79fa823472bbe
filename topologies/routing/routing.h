// SPDX-License-Identifier: Apache-2.0
// Knows which links a flow between two accelerators crosses, and what share of it each one carries.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "topologies/clos.h"
#include "topologies/fabric.h"

namespace orrery {

// Shares are multiples of 2^-30, so that sums of them are exact in any order (law 5).
double exact_share(double share);

enum class LinkKind : std::uint8_t { nic_out, nic_in, up, down, site_out, site_in };

// Names one directed bundle of equal parallel links. A field that does not apply is 0. A class of
// planes, spines, cores or parallel links goes by its lowest member.
struct LinkName {
  LinkKind kind = LinkKind::nic_out;
  std::uint8_t tier = 0;    // up, down: between switches of this tier and the next (0: leaf-spine)
  std::uint16_t plane = 0;  // bundled: of a class of planes
  std::int32_t lower = 0;   // tier 0: leaf in its group (rail first); 1: spine, bundled: of a class
  std::int64_t group = 0;   // nic: accelerator; up, down: group of the lower switch; site: site
  std::int32_t upper = 0;   // which switch above; bundled: of a class. dragonfly_plus, tier 1: the
                            // group at the other end
  std::int32_t parallel = 0;  // which of the parallel links (nic: which NIC of the accelerator)
  bool operator==(const LinkName&) const = default;
  auto operator<=>(const LinkName&) const = default;
};

struct RouteLink {
  LinkName link;
  double share = 1;  // of the flow's bytes on ONE link of the bundle
};

struct NumberedLink {
  std::int64_t number = 0;  // Router::number()
  RouteLink route;
};
using Pairs = std::vector<NumberedLink>;

struct BundleSize {
  double capacity = 0;     // B/s of one link, the fabric's efficiency included; 0: failed
  std::int64_t links = 1;  // in the bundle
};

// What differs from the catalogue: a link (or all links of a switch or a plane) with part of its
// rate left, in both directions. Where several faults meet, the least is left.
enum class FaultKind : std::uint8_t { nic, leaf_spine, spine_core, leaf, spine, plane };
struct NetworkFault {
  FaultKind kind = FaultKind::nic;
  std::int64_t accelerator = 0;  // nic; all its NICs when it has several
  std::int64_t leaf = 0;         // leaf_spine, leaf: counted over groups, then rails
  std::int64_t spine = 0;        // leaf_spine, spine_core, spine: in its pod
  std::int64_t pod = 0;          // spine_core, spine
  std::int64_t core = 0;         // spine_core: which core of the spine; dragonfly_plus: which group
  std::int64_t plane = 0;        // which plane; nic: that port, or -1: the whole NIC
  double remaining = 0;          // share of the rate that is left, 0 (failed) to 1
  std::int64_t parallel = 0;     // leaf_spine, spine_core: which parallel link, or -1: all of them
};

struct RoutingOptions {
  Routing routing = Routing::adaptive;
  std::int64_t paths_per_flow = 1;  // ecmp
  std::uint64_t seed = 1;           // of the hash
  // Planes, spines, parallel links that nothing tells apart are one bundle. Off: every link by
  // itself, for the law that both give the same times. ecmp is never bundled.
  bool bundled = true;
};
RoutingOptions routing_of(const Fabric& fabric);

// LinkFault::core of a fault of the spine itself.
inline constexpr std::int32_t whole_switch = -2;

// Paths from structure, no tables of them. `fabric` must outlive the router.
//
// A NIC's rail is its number in the domain % rails (fat_tree: one rail). Where a group has several
// leaves of a rail, its NICs fill them one after the other. An accelerator with several NICs has
// them all on one leaf, each with a port in every plane; below one NIC, neighbours share one.
// rail_only: a rail has its own spines. dragonfly_plus: minimal routing, leaf and spine of the own
// group, the direct links to the other group, the spine of the same number there, leaf. Flows
// between sites cross the last switches of both (dragonfly_plus: spines) and the long-haul links.
class Router {
 public:
  // Error (path "faults[i]") when a fault names what the fabric does not have, or leaves a pair of
  // accelerators without a path in every plane.
  Router(const Fabric& fabric, std::int64_t accelerators, const RoutingOptions& options,
         std::span<const NetworkFault> faults = {});
  // The same on a given shape, which clos_shape() need not have made.
  Router(const Fabric& fabric, ClosShape shape, const RoutingOptions& options,
         std::span<const NetworkFault> faults = {});

  // The links between two accelerators of different scale-up domains, appended to `out` in a fixed
  // order: plane by plane, NIC to NIC in each, sites last. A link occurs once; links without a
  // share are left out. Sprayed over planes and spines in proportion to what is left of each path:
  // the least of its hops' shares of their healthy rate. `label` tells flows of the same pair apart
  // (ecmp). Error when the two are on rails that do not meet (rail_only; one tier).
  void route(std::int64_t from, std::int64_t to, std::uint64_t label,
             std::vector<RouteLink>& out) const;
  // The links of a hashed flow with their numbers, queue pair by queue pair, without those between
  // sites: one that several pairs take occurs as often, and its shares add up. ecmp only.
  void route_pairs(std::int64_t from, std::int64_t to, std::uint64_t label, Pairs& out) const;
  // Links between switches have numbers that follow one another, all of a layer together and alike.
  struct Trunks {
    std::int64_t begin = 0, end = 0;  // numbers
    LinkName any;                     // one of them
    double share = 1;                 // of a flow that takes one of them on every port of its NIC
  };
  std::vector<Trunks> trunks() const;
  // Counts, by number less the first trunk's, the trunks that flows hashed with labels `first` to
  // `end` - 1 take: each flow has one queue pair on every port. Returns the highest layer that they
  // pass: 1 one leaf, 2 leaf-spine, 3 spine-core or between groups, 4 between sites (whose links
  // are not counted: every flow takes them whole). ecmp on fabrics without faults.
  int count_hashed(std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t end,
                   std::uint32_t* counts) const;
  BundleSize size(const LinkName& link) const;
  // Every link that a route can name has a number of its own in [0, links()).
  std::int64_t number(const LinkName& link) const;
  std::int64_t links() const;
  // Highest tier that the flow passes: 1 under one leaf, as PathCost::tier counts.
  int tier_between(std::int64_t from, std::int64_t to) const;
  std::int64_t site_of(std::int64_t accelerator) const;
  // Position in a scale-up domain -> class: positions in a class see the same links but for their
  // own NICs and rails, in every domain. One class without faults, if the used positions fill NICs
  // and leaves evenly and groups hold whole domains. ecmp: every position by itself.
  std::vector<int> position_classes(std::int64_t used_per_domain) const;
  const ClosShape& shape() const { return shape_; }
  std::int64_t nic_of(std::int64_t accelerator) const;   // first accelerator on the same NIC
  std::int64_t leaf_of(std::int64_t accelerator) const;  // as NetworkFault::leaf counts

 private:
  // Classes of equal things; [begin, end) are indices of the next finer classes.
  struct Lanes {
    std::int32_t first = 0, count = 1;
  };
  struct Range {
    std::int32_t begin = 0, end = 0;
  };
  struct CoreClass {
    std::int32_t first = 0, count = 1;
    Range lanes;
  };
  struct SpineClass {
    std::int32_t first = 0, count = 1;
    Range lanes, cores;
  };
  struct PlaneClass {
    std::int32_t first = 0, count = 1;
    Range spines;
    double left = 1;
  };
  // A fault at a NIC, a leaf or a pod; -1 stands for all, -2 for the switch itself.
  struct LinkFault {
    std::int64_t where = 0;
    std::int32_t plane = -1, spine = -1, core = -1, lane = -1;
    double left = 1;
  };
  using Faults = std::span<const LinkFault>;
  struct End {  // where an accelerator meets the network
    std::int64_t nic = 0, site = 0, group = 0, leaf = 0, pod = 0;
    std::int32_t lower = 0, rail = 0;
    Faults at_nic, at_leaf, at_pod;
  };
  struct Path {
    End a, b;
    int tier = 1;
    std::int32_t spines = 0;  // number of the first spine that the rail reaches
    bool touched = false;     // by a fault above the NIC
  };
  struct PlaneShares {
    double plane, spines;  // weight of the plane, sum of its spines' weights
  };

  void lay_out();
  void lay_out_positions();
  std::int64_t pod_of_group(std::int64_t group) const;
  void note(std::size_t i);  // fault i into the lists
  [[noreturn]] void bad_fault(std::size_t i, const char* what, std::int64_t found,
                              std::int64_t below) const;
  std::vector<Lanes> split(std::int64_t total, std::vector<std::int64_t> named) const;
  void take_faults();
  void make_classes();
  Range make_spines(std::int32_t plane);
  Range make_cores(std::int32_t plane, std::int32_t spine);
  Range make_lanes(std::int64_t total, const std::vector<std::int64_t>& named);
  void check_paths() const;
  bool surely_connected() const;
  std::vector<std::int64_t> suspects() const;
  bool connected(std::int64_t a, std::int64_t b) const;
  bool rails_meet(const End& a, const End& b) const;

  End end_of(std::int64_t accelerator) const;
  std::int32_t first_spine(std::int32_t rail) const;
  Path path(std::int64_t from, std::int64_t to) const;
  int tier_of(const End& a, const End& b) const;
  double nic_left(const End& e, const PlaneClass& plane) const;
  double leaf_link_left(const End& e, const PlaneClass& plane, std::int32_t spine,
                        std::int32_t lane) const;
  double spine_link_left(const End& e, const PlaneClass& plane, std::int32_t spine,
                         std::int32_t core, std::int32_t lane) const;
  double leaf_lanes(const End& e, const Path& p, const PlaneClass& plane,
                    const SpineClass& spine) const;
  double core_lanes(const Path& p, bool upwards, const PlaneClass& plane, const SpineClass& spine,
                    const CoreClass& core) const;
  double core_weight(const Path& p, const PlaneClass& plane, const SpineClass& spine,
                     const CoreClass& core) const;
  double cores_weight(const Path& p, const PlaneClass& plane, const SpineClass& spine) const;
  double spine_weight(const Path& p, const PlaneClass& plane, const SpineClass& spine) const;
  PlaneShares plane_weight(const Path& p, const PlaneClass& plane) const;
  void spray_plane(const Path& p, const PlaneClass& plane, double share, double spines,
                   std::vector<RouteLink>& out) const;
  void spray_spine(const Path& p, const PlaneClass& plane, const SpineClass& spine, double share,
                   std::vector<RouteLink>& out) const;
  void spray_cores(const Path& p, const PlaneClass& plane, const SpineClass& spine, double share,
                   std::vector<RouteLink>& out) const;
  void nic_links(LinkKind kind, const End& e, const PlaneClass& plane, double share,
                 std::vector<RouteLink>& out) const;
  struct LinkCounts {
    std::int64_t nics = 0, leaves = 0, spines = 0, sites = 0;
    std::int64_t groups = 0, lower = 0, upper = 0;  // of leaves, leaves in one, spines above it
    std::int64_t pods = 0, over = 0;                // of spines, switches above one
  };
  LinkCounts link_counts() const;
  void check_trunk(const LinkName& link) const;
  // Of a link between switches: its number less that of the first one. Inline, for count_hashed().
  std::int64_t trunk(const LinkName& link) const {
    const LinkCounts& c = counts_;
    const std::int64_t down = link.kind == LinkKind::down ? 1 : 0;
    if (link.tier == 0) {
      const std::int64_t pair =
          ((down * c.groups + link.group) * c.lower + link.lower) * c.upper + link.upper;
      return (pair * leaf_lanes_ + link.parallel) * shape_.planes + link.plane;
    }
    const std::int64_t pair =
        ((down * c.pods + link.group) * c.upper + link.lower) * c.over + link.upper;
    return c.leaves + (pair * core_lanes_ + link.parallel) * shape_.planes + link.plane;
  }
  struct Hop {
    std::int32_t upper = 0, lane = 0;
  };
  // What one queue pair's hashes chose: the spine and the core, and a parallel link of each pair of
  // switches on its way.
  struct Hops {
    Hop leaf, core;
    std::int32_t core_down = 0, leaf_down = 0;
  };
  const SpineClass& spine_at(const PlaneClass& plane, std::int64_t i) const {
    return spine_classes_[static_cast<std::size_t>(plane.spines.begin + i)];
  }
  const CoreClass& core_at(const SpineClass& spine, std::int64_t i) const {
    return core_classes_[static_cast<std::size_t>(spine.cores.begin + i)];
  }
  void mix_switches();
  [[gnu::always_inline]] std::uint64_t at_spine(std::uint64_t hash, std::size_t tier, const End& e,
                                                std::int32_t at) const;
  [[gnu::always_inline]] Hop hash_leaf_link(const Path& p, const PlaneClass& plane,
                                            std::uint64_t hash) const;
  [[gnu::always_inline]] Hop hash_core_link(const Path& p, const PlaneClass& plane,
                                            const SpineClass& spine, std::uint64_t hash) const;
  // The rest, once the leaf link is chosen.
  [[gnu::always_inline]] void hash_above_leaf(const Path& p, const PlaneClass& plane,
                                              std::uint64_t hash, Hops& hops) const;
  template <class Put>
  void hash_switches(const Path& p, const PlaneClass& plane, std::uint64_t hash,
                     const Put& put) const;
  std::int32_t core_name(const CoreClass& core, const End& other) const {
    return dragonfly_ ? static_cast<std::int32_t>(other.pod) : core.first;
  }

  const Fabric& fabric_;
  ClosShape shape_;
  RoutingOptions options_;
  std::vector<NetworkFault> faults_;

  // The shape in the numbers that a path needs; all of one plane.
  std::int64_t domain_ = 1, site_size_ = 0, sites_ = 1;
  std::int64_t groups_ = 1, pods_ = 1;  // of one site
  std::int64_t leaves_per_rail_ = 1, rails_ = 1;
  std::int64_t nics_of_rail_ = 1;                         // in one domain
  std::int64_t spines_ = 0, leaf_lanes_ = 1;              // that a leaf reaches; links to each
  std::int64_t cores_ = 0, core_lanes_ = 1;               // that a spine reaches; links to each
  std::int64_t nics_ = 1;                                 // of one accelerator, at least one
  double nic_rate_ = 0, leaf_rate_ = 0, spine_rate_ = 0;  // B/s of one link
  bool dragonfly_ = false;
  LinkCounts counts_;
  // ecmp: numbers of switches as hash_with() mixes them, by tier, pod and switch of the pod.
  std::array<std::vector<std::uint64_t>, 3> mixed_;
  std::int64_t pod_switches_ = 0;
  std::vector<std::int32_t> position_nic_, position_rail_, position_in_rail_;

  std::vector<LinkFault> nic_faults_, leaf_faults_, pod_faults_;  // by where
  std::vector<PlaneClass> planes_;
  std::vector<SpineClass> spine_classes_;
  std::vector<CoreClass> core_classes_;
  std::vector<Lanes> lanes_, nic_lanes_;
};

}  // namespace orrery
