// Knows which links a flow between two accelerators crosses, and what share of it each one carries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/clos.h"
#include "topologies/fabric.h"

namespace orrery {

// Shares are multiples of 2^-30, so that sums of them are exact in any order (law 5).
double exact_share(double share);

enum class LinkKind : std::uint8_t { nic_out, nic_in, up, down, site_out, site_in };

// Names one directed bundle of equal parallel links. A field that does not apply is 0.
struct LinkName {
  LinkKind kind = LinkKind::nic_out;
  std::uint8_t tier = 0;     // up, down: between switches of this tier and the next (0: leaf-spine)
  std::uint16_t plane = 0;   // bundled: of a class of planes
  std::int32_t lower = 0;    // which switch of the lower group (tier 0: rail); bundled: of a class
  std::int64_t group = 0;    // nic: accelerator; up, down: group of the lower switch; site: site
  std::int32_t upper = 0;    // which switch above; bundled: of a class
  std::int32_t parallel = 0; // which of the parallel links
  bool operator==(const LinkName&) const = default;
  auto operator<=>(const LinkName&) const = default;
};

struct RouteLink {
  LinkName link;
  double share = 1;  // of the flow's bytes on ONE link of the bundle
};

struct BundleSize {
  double capacity = 0;      // B/s of one link, the fabric's efficiency included; 0: failed
  std::int64_t links = 1;   // in the bundle
};

// What differs from the catalogue: a link (or all links of a switch) with part of its rate left.
enum class FaultKind : std::uint8_t { nic, leaf_spine, spine_core, leaf, spine, plane };
struct NetworkFault {
  FaultKind kind = FaultKind::nic;
  std::int64_t accelerator = 0;  // nic
  std::int64_t leaf = 0;         // leaf_spine, leaf: counted over groups, then rails
  std::int64_t spine = 0;        // leaf_spine, spine_core, spine: in its pod
  std::int64_t pod = 0;          // spine_core, spine
  std::int64_t core = 0;         // spine_core: which uplink of the spine
  std::int64_t plane = 0;        // which plane; nic: that port, or -1: the whole NIC
  double remaining = 0;          // share of the rate that is left, 0 (failed) to 1
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

// Paths from structure, no tables. `fabric` must outlive the router.
class Router {
 public:
  // Error (path "faults[i]") when a fault names what the fabric does not have, or leaves a pair of
  // accelerators without a path in every plane.
  Router(const Fabric& fabric, std::int64_t accelerators, const RoutingOptions& options,
         std::span<const NetworkFault> faults = {});

  // The links between two accelerators of different scale-up domains, appended to `out` in a fixed
  // order, NIC to NIC. A link occurs once. Sprayed over planes and spines in proportion to what is
  // left of each path. `label` tells flows of the same pair apart (ecmp).
  void route(std::int64_t from, std::int64_t to, std::uint64_t label,
             std::vector<RouteLink>& out) const;
  BundleSize size(const LinkName& link) const;
  // Highest tier that the flow passes: 1 under one leaf (group), as PathCost::tier counts.
  int tier_between(std::int64_t from, std::int64_t to) const;
  // Position in a scale-up domain -> class: positions in a class see the same links but for their
  // own NICs and rails, in every domain. Without faults there is one class.
  std::vector<int> position_classes(std::int64_t used_per_domain) const;
  const ClosShape& shape() const { return shape_; }

 private:
  const Fabric& fabric_;
  ClosShape shape_;
  RoutingOptions options_;
  std::vector<NetworkFault> faults_;
};

}  // namespace orrery
