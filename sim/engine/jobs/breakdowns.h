// SPDX-License-Identifier: Apache-2.0
// Draws what breaks on a shared cluster, whoever uses it, and who repairs it.
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/units/fleet_time.h"
#include "sim/engine/jobs/incidents.h"
#include "topologies/slots.h"

namespace orrery {

// One way in which accelerators of a cluster are lost.
struct BreakdownKind {
  std::string name;
  Hertz rate;  // of the whole cluster, were all of it held: what nobody uses does not fail
  std::int32_t reach = 1;  // hosts that stand together and that it takes; 0: one job on a host
  double removed = 1;      // share after which these hosts are out for a repair
  Seconds repair;          // mean, exponential
  Seconds latency;         // computed in vain before it is noticed
  Seconds outage;          // nothing runs for so long, besides the recovery
};

// Hosts that fail more often than the others, and come back from a repair as they were. Rates are
// of hosts that work: while some lemons are away the others are struck as often as all were.
struct LemonHosts {
  std::int32_t hosts = 0;  // 0: all hosts fail alike
  double share = 0;        // of what breaks single hosts: it strikes lemons
  // A host that was struck so often within that time goes away for good: in its place another one
  // comes back from the repair, which fails as the others do. 0: never.
  std::int32_t exchange_after = 0;
  FleetTime within;
};
struct LemonCount {
  std::int64_t struck = 0;                           // lemons, by what broke on them
  std::int64_t exchanged = 0, lemons_exchanged = 0;  // all hosts; of these, lemons
};

// Everything that breaks on a cluster; without kinds and incidents nothing does.
struct BreakdownPlan {
  std::vector<BreakdownKind> kinds;
  std::int32_t spare_hosts = 0;   // that stand in for those under repair
  std::int32_t repair_crews = 0;  // repairs at a time; 0: as many as there are
  LemonHosts lemons = {};
  std::vector<Incident> incidents = {};  // that are written down
};

struct Breakdown {
  FleetTime at;
  std::size_t kind = 0;
  std::int64_t gpu = 0;  // that it strikes
  bool removed = false;
  FleetTime repair;
  bool of_lemon = false;  // it strikes a host because that is a lemon
  bool of_usual = false;  // and would strike a usual host in its place as well
  double which = 0;       // 0 to 1: of those that work, where this one is away
};

// A row of breakdowns that depends on the seed alone, so that policies are compared on the same
// ones.
class Breakdowns {
 public:
  Breakdowns(const BreakdownPlan& plan, const SlotShape& shape, std::uint64_t seed);
  const Breakdown& next() const { return next_; }  // at fleet_never: none
  void pop();
  const std::set<std::int32_t>& lemons() const { return lemons_; }

 private:
  void draw_host();

  const BreakdownPlan& plan_;
  SlotShape shape_;
  std::set<std::int32_t> lemons_;
  RandomStream lemon_random_;  // others are drawn as without lemons
  RandomStream random_;
  double rate_ = 0;  // of all kinds, per second
  double now_ = 0;
  Breakdown next_;
};

// Hosts that are repaired together.
struct Repair {
  FleetTime done;
  std::uint64_t order = 0;  // of equals the one that began first
  std::vector<std::int32_t> hosts;
};

class RepairShop {
 public:
  explicit RepairShop(std::int32_t crews) : crews_(crews) {}
  FleetTime next() const { return at_work_.empty() ? fleet_never : at_work_.top().done; }
  void bring(FleetTime now, FleetTime length, std::vector<std::int32_t> hosts);
  // The repair that is done next; one that waited begins then.
  Repair take();

 private:
  struct Later {
    bool operator()(const Repair& a, const Repair& b) const {
      return a.done != b.done ? a.done > b.done : a.order > b.order;
    }
  };
  void begin(FleetTime now, FleetTime length, std::vector<std::int32_t> hosts);

  std::int32_t crews_;
  std::uint64_t begun_ = 0;
  std::priority_queue<Repair, std::vector<Repair>, Later> at_work_;
  std::deque<Repair> waiting_;  // `done`: how long it takes
};

// Those that stand together with one, `reach` of them, ascending.
std::vector<std::int32_t> hosts_around(const SlotShape& shape, std::int32_t reach,
                                       std::int32_t host);

}  // namespace orrery
