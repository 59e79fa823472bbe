// SPDX-License-Identifier: Apache-2.0
// Knows how collectives become flows on a fabric's links, for all ranks of a job.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/collectives/collectives.h"
#include "sim/engine/collectives/domain_edges.h"
#include "sim/engine/conditions.h"
#include "sim/engine/flows/flows.h"
#include "sim/engine/flows/number_map.h"
#include "topologies/routing/routing.h"

namespace orrery {

// Where a job's ranks are: rank r on accelerator r % used of the job's domain r / used.
struct JobGround {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_domain = 1;  // `used`: 64 of 72
  std::int64_t domain = 1;            // accelerators in a scale-up domain
  std::int64_t stages = 1;            // equal parts of the ranks that do not wait for each other
  // Of a scattered job the fabric's domain that each of the job's is; empty: they are the first.
  std::vector<std::int64_t> domain_at = {};
  std::int64_t cluster = 0;  // accelerators of the cluster; 0: the wiring is as large as need be
  bool scattered() const { return !domain_at.empty(); }
  // The same ranks on the first domains.
  JobGround side_by_side() const;
  std::int64_t domains() const { return (ranks + ranks_per_domain - 1) / ranks_per_domain; }
  bool operator==(const JobGround&) const = default;
};

struct FlowOptions {
  // One entry for all ranks of a domain, planes and spines that nothing tells apart, and colour
  // refinement over what is left. Off: every rank and every link by itself (law 5's other side).
  bool folded = true;
  // Hashed flows are spread evenly instead: the mean that collisions are measured against.
  bool spread_hashed = false;
  // Every rank stands for itself, links bundled as they are when folded: for add_group().
  bool each_rank = false;
  // Prices have times and bytes, the same ones, but neither busy links nor counts of flows: where
  // many places are priced nobody reads those.
  bool ends_only = false;
};

// The flows of one collective, all groups of its kind at once, as a range of the table's entries.
// FlowEntry::bytes is a flow's share of the collective's per-rank bytes.
struct FlowRange {
  FlowIndex first = 0, last = 0;  // [first, last)
  // What `bytes` shares refer to: bytes over the NICs of a busiest rank, or over its scale-up port
  // when the group stays inside its domain.
  bool crosses = false;
};

// Builds one table for all collectives of a job. Links are made as flows name them:
//   - the links of the scale-out fabric, by Router;
//   - every rank's scale-up port, which a crossing flow loads in proportion;
//   - every rank's engine in a collective: what its library can send alone. Its rate is bytes over
//     CollectiveTime::transfer, so that a collective alone on a healthy fabric that blocks nothing
//     takes what the alpha-beta model says.
class FlowGround {
 public:
  // `fabric` must outlive it. Errors as Router's; conditions that name an accelerator beyond the
  // fabric's are errors too.
  FlowGround(const Fabric& fabric, const JobGround& job, const Conditions& conditions,
             const FlowOptions& options);

  // A healthy fabric of a given shape, which clos_shape() need not have made.
  FlowGround(const Fabric& fabric, const ClosShape& shape, const JobGround& job,
             const FlowOptions& options);

  // `alone` is collective_time() of it. Each call adds entries; flows of different calls have
  // different colours.
  FlowRange add(const Collective& collective, const CollectiveTime& alone);
  // The same of one group of the job's ranks, those of a domain side by side, which need not be
  // alike in its domains: the i-th of a domain sends to the i-th of another, or goes round where
  // there are fewer. Of a message the sender, then the receiver. Needs `each_rank`.
  FlowRange add_group(std::span<const std::int64_t> ranks, const Collective& collective,
                      const CollectiveTime& alone);
  // The same of the one collective that lies on another ground of this job and network.
  FlowRange add_laid(const FlowGround& laid, FlowRange range);
  FlowRange add_background(const BackgroundTraffic& traffic);
  // Of a ground with one collective and nothing else: makes its flows those that add() would make
  // of the same kind, group and algorithm with other times and bytes. False where the flows
  // themselves would differ: one of the two loads ports and the other does not.
  bool retune(const CollectiveTime& alone, FlowRange& range);

  const FlowTable& table() const { return table_; }
  const JobGround& job() const { return job_; }
  // Flows take paths that a hash chose: none is like another.
  bool hashed() const {
    return fabric_.scale_out.routing == Routing::ecmp && !options_.spread_hashed;
  }
  const ClosShape& shape() const { return router_.shape(); }
  // Tier of a link for reports: 0 scale-up port, 1 NIC, 2 leaf-spine, 3 spine-core, 4 between
  // sites; -1 engines, which are no wires.
  int tier(LinkIndex link) const { return tiers_[link]; }
  // Domain that a flow starts in.
  std::int64_t home(FlowIndex flow) const { return homes_[flow]; }
  // Name of a link for people: "leaf 3 to spine 5, plane 0".
  std::string describe(LinkIndex link) const;

 private:
  struct Position {                               // ranks of a domain that nothing tells apart
    std::int64_t first = 0;                       // position of the representative
    double ranks = 1;                             // in the class
    double on_nic = 1, on_leaf = 1, on_rail = 1;  // of them, where the representative is
  };
  // What a collective's flows pass beside wires: every rank's engine, and its port in proportion.
  struct Rates {
    double engine = 0, port_share = 0;
  };
  void split_positions();
  void add_edges(const std::vector<DomainEdge>& edges, const Rates& rates);
  void add_edge(const DomainEdge& edge, std::size_t from, std::size_t to, std::uint64_t label,
                const Rates& rates);
  void add_group_edges(std::span<const std::int64_t> ranks, const std::vector<DomainEdge>& edges,
                       const Rates& rates);
  void add_reduction_tree(std::span<const std::int64_t> domains, std::size_t position,
                          const Rates& rates);
  void add_inside(std::int64_t domain, std::size_t position, double rate);
  // Begins a collective: an empty range, and its rates; an engine of 0 has no flows.
  std::pair<FlowRange, Rates> begin_flows(const Collective& collective,
                                          const CollectiveTime& alone);
  FlowRange end_collective(FlowRange range, const CollectiveTime& alone);
  // A rank's domain in the job, and of `each_rank` its position's place in positions_.
  std::int64_t domain_of(std::int64_t rank) const { return rank / job_.ranks_per_domain; }
  std::size_t position_of(std::int64_t rank) const {
    return place_of_[static_cast<std::size_t>(rank % job_.ranks_per_domain)];
  }
  // The links of a flow of one position, in uses_.
  void add_route(std::int64_t from, std::int64_t to, std::uint64_t label, const Position& p);
  LinkIndex link_of(std::int64_t number, const LinkName& name);
  LinkIndex link_of(const LinkName& name) { return link_of(router_.number(name), name); }
  LinkIndex name_link(LinkIndex link, int tier, const LinkName& name, std::int64_t number);
  LinkIndex port_of(std::int64_t domain, std::size_t position);
  // `domain`: the job's, or while other traffic is added the fabric's.
  std::int64_t accelerator(std::int64_t domain, std::int64_t position) const {
    const bool own = job_.scattered() && !others_;
    const std::int64_t at = own ? job_.domain_at[static_cast<std::size_t>(domain)] : domain;
    return at * job_.domain + position;
  }
  double sharing_ranks(const LinkName& name, const Position& p) const;
  void begin_collective();
  LinkIndex engine_of(std::int64_t domain, std::size_t position, double rate);

  const Fabric& fabric_;
  JobGround job_;
  Conditions conditions_;
  FlowOptions options_;
  Router router_;
  std::vector<Position> positions_;
  std::vector<std::size_t> place_of_;  // of a position that stands for itself, in positions_
  FlowTable table_;
  std::vector<int> tiers_;
  std::vector<LinkName> names_;
  std::vector<std::int64_t> numbers_;  // the router's; no_wire: engines and ports
  NumberMap by_number_;                // the router's
  std::vector<std::int64_t> homes_;
  std::vector<LinkIndex> ports_, engines_;  // [domain * positions + position]
  // Scratch of add_edges(): a flow's links, and of every link which of the flow's uses it is.
  std::vector<RouteLink> route_;
  Pairs pairs_;
  std::vector<FlowUse> uses_;
  std::vector<std::uint32_t> use_of_;
  std::uint64_t colour_ = 0;
  bool others_ = false;  // other traffic is being added
};

}  // namespace orrery
