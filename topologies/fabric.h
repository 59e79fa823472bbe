// SPDX-License-Identifier: Apache-2.0
// Describes how machines are wired: tiers from the scale-up domain outwards, rails and planes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json/json.h"
#include "sim/base/text/enum_names.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

enum class ScaleUpKind : std::uint8_t { switched, mesh, torus, none };
// dragonfly_plus: groups that are two-tier Clos networks, every pair of groups joined directly.
enum class ScaleOutKind : std::uint8_t {
  none,
  fat_tree,
  rail_optimised,
  rail_only,
  torus,
  dragonfly_plus,
};
// How a fabric picks among equal paths. adaptive and spray spread every flow over all of them,
// around what has failed; ecmp hashes each of a flow's queue pairs onto one and leaves it there.
enum class Routing : std::uint8_t { adaptive, spray, ecmp };
inline constexpr auto routing_text = enum_names<Routing>({"adaptive", "spray", "ecmp"});
constexpr std::string_view to_text(Routing r) { return routing_text[r]; }
enum class FabricTechnology : std::uint8_t {
  infiniband,
  spectrum_x,
  roce,
  efa,
  omnipath,
  slingshot,
  ici,
  tcpx,
};
std::string_view to_text(ScaleUpKind);
std::string_view to_text(ScaleOutKind);
std::string_view to_text(FabricTechnology);

// One level of switches inside a scale-up domain, counted from the accelerator. Every accelerator
// has its links spread over all switches of its group.
struct ScaleUpLevel {
  std::string switch_name;         // part name: "nvswitch-gen4"
  std::int64_t reach = 0;          // accelerators under one group; the last level, 0: the domain
  Sourced<std::int64_t> switches;  // chips in one group
};

// The scale-up domain: GPUs that load and store each other's memory.
struct ScaleUp {
  ScaleUpKind kind = ScaleUpKind::switched;
  std::string link;                   // part name: "nvlink4"
  std::int64_t domain = 8;            // accelerators in one domain
  Sourced<BytesPerSecond> bandwidth;  // per accelerator and direction, to all peers together
  Sourced<Seconds> latency;           // one hop, store to visible
  std::int64_t torus_axes = 3;        // torus only: each axis is two of the accelerator's links
  bool in_network_reduction = false;  // NVLS
  // What it is made of; predictions do not depend on it. Unknown where nothing is published.
  Sourced<std::int64_t> links;       // of one accelerator
  std::vector<ScaleUpLevel> levels;  // switched only; empty with known links: no switch
  std::int64_t cube = 0;             // torus: edge of a block wired by copper; 0: all of it
  std::string circuit_switch;        // torus: what joins the cubes: "palomar-ocs"
  std::vector<Sourced<BytesPerSecond>>
      axis_links;  // torus: one link of each axis; empty: all equal
};

// One tier of switches of the scale-out fabric, counted from the NIC.
struct Tier {
  std::string switch_name;  // part name: "qm9700"
  std::int64_t reach = 0;   // accelerators under one switch group of this tier; 0: all
  std::int64_t radix = 0;   // ports of one switch at the rate of its links down; 0: unknown
  Sourced<double> oversubscription;  // down-rate over up-rate; 1: non-blocking
  Sourced<Seconds> latency;          // added per traversal of this tier (up and down together)
  // Of one link up; absent: the rate of the links down. A faster one takes that many more ports.
  Sourced<BytesPerSecond> uplink_bandwidth;
};

struct ScaleOut {
  ScaleOutKind kind = ScaleOutKind::fat_tree;
  FabricTechnology technology = FabricTechnology::infiniband;
  std::string nic;                       // part name: "connectx-7"
  Sourced<double> nics_per_accelerator;  // may be below 1 (four NICs for eight GPUs: 0.5)
  std::int64_t planes = 1;               // parts of a NIC, each on a network of its own
  std::int64_t rails = 1;  // rail-optimised, rail-only: NIC i of every host is on rail i % rails
  Routing routing = Routing::adaptive;
  std::int64_t paths_per_flow = 1;        // ecmp: queue pairs of one flow, each hashed by itself
  std::int64_t reserved_hosts = 0;        // slots of a full wiring kept for management (UFM)
  Sourced<BytesPerSecond> nic_bandwidth;  // per NIC and direction
  Sourced<Seconds> nic_latency;
  Sourced<double> efficiency;  // share of the line rate that large collectives reach
  std::vector<Tier> tiers;
  bool in_network_reduction = false;  // SHARP
};

// Several data centres that train one model: `accelerators` in each, joined pairwise.
struct Sites {
  std::int64_t accelerators = 0;           // in one site; 0: there is one site
  Sourced<BytesPerSecond> bandwidth;       // of one site to all others, per direction
  Sourced<double> kilometres;              // of fibre between two sites
  Sourced<Seconds> latency_per_kilometre;  // light in fibre: 4.9 us
  Sourced<double> efficiency;              // share of the bandwidth that long transfers reach
};

// A wiring at any number of accelerators. Values in a catalogue file of topologies/catalog.
struct Fabric {
  // Compiled once: it is long, and units all over the program hold one.
  Fabric();
  Fabric(const Fabric&);
  Fabric(Fabric&&) noexcept;
  Fabric& operator=(const Fabric&);
  Fabric& operator=(Fabric&&) noexcept;
  ~Fabric();

  std::string name, title;
  ScaleUp scale_up;
  ScaleOut scale_out;
  Sites sites;
};

// Reads topologies/catalog/<name>.json; errors name the key. A fabric without scale-out has
// {"kind": "none"} there and nothing else.
Fabric read_fabric(const JsonValue& file);

// The line rate, per direction, of one link below a tier's switches in one plane: of a NIC's port
// under tier 0, of an uplink of tier t - 1 under tier t.
BytesPerSecond link_below(const ScaleOut& out, std::size_t tier);

// What a flow between two accelerators sees: everything outside the domain is one of the tiers.
struct PathCost {
  Seconds latency;
  BytesPerSecond bandwidth;  // of one accelerator's share of NICs; tapered tiers are shared above
  int tier = 0;  // 0: inside the scale-up domain, then the tiers; one more: another site
};
// Path between accelerators a and b of a job placed contiguously; efficiency included.
// Error when they need a scale-out network and the fabric has none.
PathCost path_between(const Fabric& fabric, std::int64_t a, std::int64_t b);

// What one NIC sees (its rate after efficiency) when the farthest partners are `span`
// accelerators apart. Error when the fabric has no scale-out network.
PathCost nic_path(const Fabric& fabric, std::int64_t span);

// The part of an accelerator's scale-up bandwidth that a group of `ranks` of a domain can use: all
// of it behind switches, the links to its members in a mesh, the axes that it spans in a torus.
BytesPerSecond scale_up_share(const ScaleUp& scale_up, std::int64_t ranks);

// Axes of a torus that a group of `ranks` of its domain spans: slices are built of rings of four (a
// TPU cube is 4 x 4 x 4), so four ranks fill an axis, sixteen a plane.
std::int64_t torus_axes_spanned(const ScaleUp& scale_up, std::int64_t ranks);

// Calls visit(path, sourced) on every value, in a fixed order: for ranges and law 12.
template <class FabricRef, class Visit>
void visit_fabric_values(FabricRef& f, Visit&& visit) {
  visit("scale_up.bandwidth", f.scale_up.bandwidth);
  visit("scale_up.latency", f.scale_up.latency);
  visit("scale_out.nics_per_accelerator", f.scale_out.nics_per_accelerator);
  visit("scale_out.nic_bandwidth", f.scale_out.nic_bandwidth);
  visit("scale_out.nic_latency", f.scale_out.nic_latency);
  visit("scale_out.efficiency", f.scale_out.efficiency);
  for (std::size_t i = 0; i < f.scale_out.tiers.size(); ++i) {
    visit("scale_out.tiers[" + std::to_string(i) + "].oversubscription",
          f.scale_out.tiers[i].oversubscription);
    visit("scale_out.tiers[" + std::to_string(i) + "].latency", f.scale_out.tiers[i].latency);
    if (f.scale_out.tiers[i].uplink_bandwidth.known())
      visit("scale_out.tiers[" + std::to_string(i) + "].uplink_bandwidth",
            f.scale_out.tiers[i].uplink_bandwidth);
  }
  if (f.sites.accelerators == 0) return;
  visit("sites.bandwidth", f.sites.bandwidth);
  visit("sites.kilometres", f.sites.kilometres);
  visit("sites.latency_per_kilometre", f.sites.latency_per_kilometre);
  visit("sites.efficiency", f.sites.efficiency);
}

}  // namespace orrery
