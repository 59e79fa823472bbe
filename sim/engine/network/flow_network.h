// SPDX-License-Identifier: Apache-2.0
// Finds when collectives end on the network as it is wired: shared links, hashing, faults, others.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/flows/clock.h"
#include "sim/engine/flows/ground.h"
#include "sim/engine/flows/symmetry.h"
#include "sim/engine/network/flow_price.h"
#include "sim/engine/network/laid_flows.h"
#include "sim/engine/network/network.h"
#include "sim/engine/network/streams.h"

namespace orrery {

class FlowMemory;

// Folded, a healthy sprayed fabric is first shortened to what does not repeat (short_job.h).
FlowPrice flow_price(const Collective& collective, const Fabric& fabric,
                     const CollectiveCosts& costs, const JobGround& job,
                     const Conditions& conditions, const FlowOptions& options = {});

// Collectives first wait their latency, then their flows share the links max-min fairly with all
// that runs; a collective ends when its slowest flow has ended. Groups of a kind start together.
//
// price() looks at the whole job, with its faults. start() runs collectives beside each other; of a
// job on more than most_shared_domains domains it runs a healthy part of that many, in which groups
// keep their rates and steps but have fewer members: what they share are NICs, ports and the links
// near them, which a longer job only repeats. Of a scattered job the part is about that many
// domains of pods and leaves that are evenly chosen among all that it is on, as full as these are
// as far as they fit: links above a pod that has more of the job are less busy than in the job.
inline constexpr std::int64_t most_shared_domains = 64;
class FlowNetwork final : public Network {
 public:
  // Fabric, costs and memory must outlive the network. `memory`: what better() is kept in.
  FlowNetwork(const Fabric& fabric, const CollectiveCosts& costs, const JobGround& job,
              const Conditions& conditions, const FlowOptions& options = {},
              FlowMemory* memory = nullptr);
  CollectiveId start(const Collective& collective, Ticks time) override;
  std::optional<Completion> next_completion() override;
  const CollectiveTime& price(const Collective& collective, std::int64_t stage = 0) override;
  // What this network is never faster than, null: itself. Of a broken or busy one the same with
  // nothing broken and no traffic of others; of a scattered job's the same with its domains side by
  // side, since what others leave free of a switch today is theirs tomorrow.
  FlowNetwork* better();
  const FlowPrice& details(const Collective& collective);
  // Of a network in a memory, what these streams took before; null: not known. To the bit, since
  // what has ended leaves no trace in what runs now.
  const TwoStreams* known(std::span<const StreamItem> main, std::span<const StreamItem> side) const;
  void remember(std::span<const StreamItem> main, std::span<const StreamItem> side,
                const TwoStreams& streams);
  Ticks now() const { return now_; }  // of the last completion returned

  std::size_t flows() const { return ground_->table().flows.size(); }  // entries before folding
  std::size_t classes() const { return folded_.table.flows.size(); }

 private:
  // A collective's flows in the table; used again by later ones of the same shape and rates.
  struct Instance {
    Collective like;  // bytes apart
    CollectiveTime alone;
    FlowRange range;
    bool busy = false;
  };
  struct Running {
    CollectiveId id;
    std::size_t instance = 0;
    double bytes = 0;      // of a busiest rank, that flows' shares refer to
    std::size_t left = 0;  // flow classes still moving
    bool flowing = false;
  };
  std::size_t instance_for(const Collective& collective, const CollectiveTime& alone);
  LaidFlows& laid_flows();
  FlowPrice price_ends(const Collective& collective);
  void forget_flows();
  void refold(Ticks now);
  void begin_flows(std::size_t running, Ticks now);

  const Fabric& fabric_;
  const CollectiveCosts& costs_;
  Conditions conditions_;
  FlowMemory* memory_;
  std::unique_ptr<FlowNetwork> own_better_;  // where there is no memory
  FlowNetwork* better_ = nullptr;            // once it was asked for
  FlowOptions options_;
  JobGround job_;
  std::optional<FlowGround> ground_;  // of the part that start() runs
  Folded folded_;
  std::unique_ptr<FlowClock> clock_;
  std::size_t folded_flows_ = 0;  // of the ground's table when it was last folded
  std::vector<Instance> instances_;
  std::vector<Running> running_;
  std::vector<std::size_t> owner_;  // of a flow class: index into running_
  EventQueue begins_;               // of flows, after a collective's latency
  std::int64_t started_ = 0;
  Ticks now_;
  std::unordered_map<Collective, FlowPrice, CollectiveHash> memo_;
  struct Streams {
    std::vector<StreamItem> main, side;
    TwoStreams took;
  };
  std::vector<Streams> streams_;
  std::unique_ptr<LaidFlows> laid_;  // of the whole job, where only ends are asked for
};

}  // namespace orrery
